"""The sums of a pass for any likelihood: those of the sites of all rows at a q."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..covariances.domains import Box
from ..sphere._typing import Array
from .archives import FORMAT
from .compensated import Accumulator, CompensatedSum, Sums
from .identity import Identity, differing_parameter
from .site_contributions import Layout, RowSites, SiteContributions, WhitenedQ
from .sources import BoolArray

_PROBES = 4
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class SiteStatistics:
    """Sums over rows of sites at a q.

    :ivar layout: The sizes.
    :ivar sums: ``gram`` has the sums of ``beta s s^T`` for each latent GP, below each other, ``[L
        K, K]``, of rows with a positive beta; ``diagonal`` is the vector of :class:`Layout`.
    :ivar negative: The same of rows with a negative beta; None if there are none.
    :ivar num_skipped: The number of rows left out because they had NaN or infinite numbers.
    :ivar identity: The identity of the features, the likelihood and q.
    :ivar seconds: As in :class:`SufficientStatistics`.
    :ivar finite: Whether all sites were finite; if not, the sums are meaningless.
    """

    layout: Layout
    sums: Sums
    negative: CompensatedSum | None
    num_skipped: int
    identity: Identity
    seconds: Mapping[str, float] = field(default_factory=dict)
    finite: bool = True

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.sums.num_rows

    def parts(self) -> dict[str, Array]:
        """The sums by name: "precisions" and "negative_precisions" ``[L, K, K]``, and those of
        :class:`Layout`."""
        shape = (self.layout.num_latents, self.layout.num_stacked, self.layout.num_stacked)
        negative = np.zeros(shape) if self.negative is None else self.negative.value
        return {
            "precisions": self.sums.gram.value.reshape(shape),
            "negative_precisions": negative.reshape(shape),
            **self.layout.split(self.sums.diagonal.value),
        }

    def __add__(self, other: SiteStatistics) -> SiteStatistics:
        return self._combined(other, 1)

    def __sub__(self, other: SiteStatistics) -> SiteStatistics:
        return self._combined(other, -1)

    def _combined(self, other: SiteStatistics, sign: int) -> SiteStatistics:
        return replace(
            self,
            sums=self.sums.plus(other.sums, sign),
            negative=_added(self.negative, other.negative, sign),
            num_skipped=max(0, self.num_skipped + sign * other.num_skipped),
            finite=self.finite and other.finite,
            seconds={
                part: self.seconds.get(part, 0.0) + other.seconds.get(part, 0.0)
                for part in {**self.seconds, **other.seconds}
            },
        )

    def to_arrays(self) -> dict[str, Array]:
        """The statistics as named arrays."""
        identity = self.identity
        layout = self.layout
        header = {
            "format": FORMAT,
            "kind": "sites",
            "num_rows": self.num_rows,
            "num_skipped": self.num_skipped,
            "finite": self.finite,
            "mean": identity.mean,
            "num_outputs": identity.num_outputs,
            "layout": [
                layout.num_stacked,
                layout.num_latents,
                layout.num_terms,
                layout.num_parameters,
            ],
            "seconds": dict(self.seconds),
            "parameters": list(identity.parameters),
        }
        arrays = {
            "header": np.array(json.dumps(header)),
            "gram": np.stack([self.sums.gram.high, self.sums.gram.low]),
            "diagonal": np.stack([self.sums.diagonal.high, self.sums.diagonal.low]),
            "probes": identity.probes,
            "stacked": identity.stacked,
            "terms": identity.terms,
        }
        if self.negative is not None:
            arrays["negative"] = np.stack([self.negative.high, self.negative.low])
        for number, value in enumerate(identity.parameters.values()):
            arrays[f"parameter_{number}"] = np.asarray(value)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SiteStatistics:
        """The opposite of :meth:`to_arrays`.

        :raises ValueError: If an array is missing, of another shape, or not finite.
        """
        try:
            header = json.loads(str(arrays["header"]))
            if header.get("kind") != "sites":
                raise ValueError("'header': these are no sums of sites")
            layout = Layout(*header["layout"])
            size, latents = layout.num_stacked, layout.num_latents
            wanted = {"gram": (2, latents * size, size), "diagonal": (2, layout.size)}
            if "negative" in arrays:
                wanted["negative"] = wanted["gram"]
            for name, shape in wanted.items():
                found = arrays[name]
                if found.shape != shape or not np.all(np.isfinite(found)):
                    raise ValueError(f"{name!r}: found shape {found.shape}, or infinite numbers")
            negative = CompensatedSum(*arrays["negative"]) if "negative" in arrays else None
            names = header["parameters"]
            return cls(
                layout=layout,
                sums=Sums(
                    CompensatedSum(*arrays["gram"]),
                    CompensatedSum(*arrays["diagonal"]),
                    int(header["num_rows"]),
                ),
                negative=negative,
                num_skipped=int(header["num_skipped"]),
                identity=Identity(
                    parameters={name: arrays[f"parameter_{i}"] for i, name in enumerate(names)},
                    mean=header["mean"],
                    num_outputs=header["num_outputs"],
                    probes=arrays["probes"],
                    stacked=arrays["stacked"],
                    terms=arrays["terms"],
                ),
                seconds=header["seconds"],
                finite=bool(header["finite"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"{error} is missing") from error


class SiteContent:
    """The content of passes that sum sites.

    :param targets: Returns what is wrong with targets; None if nothing is.
    """

    def __init__(self, contributions: SiteContributions, q: WhitenedQ, targets: Any) -> None:
        self._contributions, self._q, self._targets = contributions, q, targets

    @property
    def boxes(self) -> Sequence[Box]:
        """Where the rows have to be."""
        return self._contributions.boxes

    def outside(self, X: Array) -> BoolArray:
        """Which rows are outside of :attr:`boxes`, ``[n]``."""
        return self._contributions.outside(X)

    def begin(self, done: SiteStatistics | None) -> SiteSums:
        """The sums of a pass, after those of an earlier pass that was interrupted."""
        return SiteSums(self, done)

    def statistics_from(self, arrays: Mapping[str, Array]) -> SiteStatistics:
        """As :meth:`SiteStatistics.from_arrays`."""
        return SiteStatistics.from_arrays(arrays)

    @property
    def layout(self) -> Layout:
        """The sizes."""
        return self._contributions.layout

    def evaluate(self, X: Array, Y: Array) -> RowSites:
        """What a batch adds.

        :raises ValueError: For targets that the likelihood does not know.
        """
        self._targets(Y)
        return self._contributions.evaluate(X, Y, self._q)

    def identify(self, X: Array) -> Identity:
        """The moments of f at a few rows say which features, parameters and q sums are of."""
        probes = np.array(X[:_PROBES], np.float64)
        mean, variance = self._contributions.moments(probes, self._q)
        features = self._contributions.features
        return Identity(
            parameters=self._contributions.values(),
            mean=features.mean.kind,
            num_outputs=features.num_outputs,
            probes=probes,
            stacked=mean.T.astype(np.float64),
            terms=variance.T.astype(np.float64),
        )

    def difference(self, statistics: SiteStatistics) -> str | None:
        """How the features, parameters or q of the statistics differ from these."""
        then, layout = statistics.identity, statistics.layout
        if layout != self.layout or then.mean != self._contributions.features.mean.kind:
            return f"they have the sizes {layout}, and the model has {self.layout}"
        difference = differing_parameter(then.parameters, self._contributions.values())
        if difference is not None:
            return difference
        now = self.identify(then.probes)
        for before, after in ((then.stacked, now.stacked), (then.terms, now.terms)):
            scale = float(np.max(np.abs(before), initial=0.0))
            if not np.allclose(before, after, rtol=_TOLERANCE, atol=_TOLERANCE * scale):
                return "q, or the features, had other values"
        return None

    def supersedes(self, statistics: SiteStatistics) -> bool:
        """True for sums of an earlier pass: q and the parameters change from pass to pass."""
        return statistics.layout == self.layout and self.difference(statistics) is not None


class SiteSums:
    """The sums of a pass that is under way."""

    def __init__(self, content: SiteContent, done: SiteStatistics | None) -> None:
        self._content = content
        layout = content.layout
        rows = layout.num_latents * layout.num_stacked
        self._shape = (layout.num_latents, layout.num_stacked, layout.num_stacked)
        self._identity: Identity | None = None
        zeros = CompensatedSum.zeros
        sums = Sums(zeros(rows, layout.num_stacked), zeros(layout.size))
        self._negative: CompensatedSum | None = None
        if done is not None:
            self._identity, sums, self._negative = done.identity, done.sums, done.negative
        self._accumulator = Accumulator(sums)
        self._negative_block: Array | None = None
        self._finite = done is None or done.finite

    def add(self, X: Array, Y: Array, seconds: dict[str, float]) -> str | None:
        """Add a batch; see :class:`.content.RunningSums`."""
        start = time.perf_counter()
        if self._identity is None:
            self._identity = self._content.identify(X)
        if not self._finite:
            return None
        sites = self._content.evaluate(X, Y)
        evaluated = time.perf_counter()
        seconds["features"] += evaluated - start
        stacked = sites.stacked.astype(np.float64, copy=False)

        def products(out: Array) -> None:
            for product, weights in zip(
                out.reshape(self._shape), sites.precisions.astype(np.float64), strict=True
            ):
                scaled = stacked * np.sqrt(weights)
                np.matmul(scaled, scaled.T, out=product)

        # A q that is far off may lead to numbers without end: the caller looks for another one.
        self._finite = self._finite and self._accumulator.add_sums(
            products, sites.vector, stacked.shape[1]
        )
        if not self._finite:
            return None
        self._add_negative(stacked, sites.negative.astype(np.float64))
        seconds["products"] += time.perf_counter() - evaluated
        return None

    def _add_negative(self, stacked: Array, negative: Array) -> None:
        """Rows with a negative precision are few: only these are multiplied."""
        for number, weights in enumerate(negative):
            rows = np.flatnonzero(weights)
            if len(rows):
                if self._negative_block is None:
                    self._negative_block = np.zeros(self._shape)
                scaled = stacked[:, rows] * np.sqrt(-weights[rows])
                self._negative_block[number] -= scaled @ scaled.T

    @property
    def is_full(self) -> bool:
        """Whether the block has as many batches as it should."""
        return self._accumulator.is_full

    def end_block(self) -> tuple[Sums, CompensatedSum | None]:
        """Add the block to the sums, and return these."""
        if self._negative_block is not None:
            block = CompensatedSum(self._negative_block.reshape(-1, self._shape[-1]))
            self._negative = _added(self._negative, block, 1)
            self._negative_block = None
        return self._accumulator.end_block(), self._negative

    def statistics(
        self,
        sums: tuple[Sums, CompensatedSum | None],
        num_skipped: int,
        seconds: Mapping[str, float],
    ) -> SiteStatistics | None:
        """The statistics of such sums; None before any batch."""
        if self._identity is None:
            return None
        return SiteStatistics(
            self._content.layout, *sums, num_skipped, self._identity, dict(seconds), self._finite
        )


def _added(
    one: CompensatedSum | None, other: CompensatedSum | None, sign: int
) -> CompensatedSum | None:
    """Their sum or difference, None being zero."""
    if other is None:
        return one
    if one is None:
        one = CompensatedSum.zeros(*other.high.shape)
    return one.plus(other, sign)
