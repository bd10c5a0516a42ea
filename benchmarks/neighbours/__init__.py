"""Features, neighbours and both, beside GPBoost, trees and linear interpolation."""
