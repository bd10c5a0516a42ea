"""Log density and errors against seconds: GPflow's models, trees and ours, on twelve data sets."""
