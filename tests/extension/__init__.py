"""A family that is not the library's: what it takes to add one (docs/add_a_family.md)."""
