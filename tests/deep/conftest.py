"""Everything here needs GPflux, which the extras `deep`, `test` and `dev` bring."""

from importlib.util import find_spec

if find_spec("gpflux") is None:
    collect_ignore_glob = ["test_*.py"]
