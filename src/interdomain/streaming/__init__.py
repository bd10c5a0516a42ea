"""Sums over rows of sites, for :class:`interdomain.models.CollapsedSVGP`."""
