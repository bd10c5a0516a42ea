"""The seconds until the first step of training, and until a second fit."""
