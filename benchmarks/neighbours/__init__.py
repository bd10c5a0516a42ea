"""The benchmark of features, neighbours and both, with GPBoost, trees and linear interpolation."""
