"""Shorter runs of the notebooks: numbers that replace the numbers in their text.

A notebook has `NUM_FEATURES = 1080`, and no code for short runs. With INTERDOMAIN_SMOKE=1,
`tools/run_notebooks.py` executes it with the number in this file.
"""

import re

NUMBERS = {
    "activation_orthogonal": {"NUM_UNITS": "8", "STEPS": "5"},
    "additive": {"FOLDS": "2", "NUM_FEATURES": "210"},
    "chosen_harmonics": {"NUM_ROWS": "1_000", "NUM_INDUCING": "80"},
    "convolutional": {"NUM_PATCHES": "8", "STEPS": "5"},
    "deep": {"STEPS": "100", "EPOCHS": "20"},
    "function_samples": {"ROUNDS": "2"},
    "globe": {"NUM_STATIONS": "300", "MAX_DEGREE": "6", "STEP": "10"},
    "harmonic": {"BLOCK": "16", "NUM_POINTS": "10", "STEPS": "8"},
    "harmonizable": {"EVERY": "8", "COMPONENTS": "2", "FREQUENCIES": "4", "STEPS": "3"},
    "large_data": {"EVERY": "40", "MAX_DEGREE": "2", "STEPS": "3", "SUBSET": "500"},
    "quickstart": {"MAX_ITERATIONS": "10"},
    "splines": {"NUM_SPLINES": "12"},
    "space_and_time": {"NUM_STATIONS": "10", "NUM_SPLINES": "60"},
    "sums_means_slopes": {"NUM_DAYS": "4", "NUM_WAVES": "60", "NUM_SPLINES": "8"},
    "terrain": {"NUM_POINTS": "20", "EVERY": "8"},
    "transformations": {"NUM_POINTS": "5", "SIZE": "15"},
}


def shortened(name: str, source: str) -> str:
    """The text of a notebook with its short numbers.

    :raises ValueError: unless each number is assigned exactly once, on a line of its own.
    """
    for variable, number in NUMBERS.get(name, {}).items():
        source, found = re.subn(
            rf"^{variable} = [\d._e-]+", f"{variable} = {number}", source, flags=re.MULTILINE
        )
        if found != 1:
            raise ValueError(f"{name} must have one line `{variable} = <number>`, found {found}")
    return source
