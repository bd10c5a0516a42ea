"""Log density and errors against seconds: stock models, trees and ours, on twelve data sets."""
