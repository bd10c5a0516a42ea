# %% [markdown]
# # What errors do latitude and longitude as two columns cause?
#
# This notebook compares two models of temperatures on the globe: a kernel of the sphere, and a
# kernel of latitude and longitude as two columns of a flat map. The notebook is for readers with
# data from the whole earth. On a flat map, neighbours on both sides of the date line are 360
# degrees apart, and a pole is a line. A kernel of the globe maps the same columns, in degrees, to
# points of the sphere.
#
# The field is made up: colder towards the poles, with hills at random points of the sphere. There
# are 4,000 stations, more of them north of the equator, with a noise of 1 degree Celsius.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np

import interdomain as idm

NUM_STATIONS = 4_000
MAX_DEGREE = 20
STEP = 2  # degrees between the points of the maps
NUM_FEATURES = (MAX_DEGREE + 1) ** 2  # of each model
rng = np.random.default_rng(0)
centres = rng.normal(size=[40, 3])
centres /= np.linalg.norm(centres, axis=1, keepdims=True)
heights = rng.normal(scale=6, size=len(centres))


def temperature(X):
    """The temperature in degrees Celsius at rows of latitude and longitude in degrees."""
    unit = idm.sphere.unit_vectors(X).numpy()
    hills = np.exp(10 * (unit @ centres.T - 1)) @ heights
    return (30 - 45 * unit[:, 2] ** 2 + hills)[:, None]


directions = rng.normal(size=[NUM_STATIONS, 3]) + [0, 0, 0.3]
X = idm.sphere.latitude_longitude(directions).numpy()  # [N, 2]
Y = temperature(X) + rng.normal(size=[NUM_STATIONS, 1])
mean, scale = Y.mean(), Y.std()

# %% [markdown]
# ## On the globe
#
# `GlobeMatern52` has two parameters: a variance, and a lengthscale in radians. Its spherical
# harmonics depend on neither, so one pass over the rows is enough.

# %%
start = perf_counter()
kernel = idm.kernels.GlobeMatern52(lengthscale=0.3)
harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, MAX_DEGREE)
prior = idm.kernels.FiniteRank(kernel, harmonics)
globe = idm.models.StructuredSGPR((X, (Y - mean) / scale), prior, harmonics, noise_variance=0.1)
idm.fit(globe, progress=False)
seconds = {"globe": perf_counter() - start}
lengthscale = kernel.lengthscale.numpy()
print(f"{harmonics.num_inducing} harmonics; lengthscale {lengthscale:.2g} rad")

# %% [markdown]
# ## Two columns
#
# The baseline has as many Fourier features of a box around the map, and a Matern-5/2 kernel with a
# lengthscale for each column. Both models are trained in the same way.

# %%
start = perf_counter()
base = gpflow.kernels.Matern52(lengthscales=[60.0, 60.0])  # degrees
box = idm.kernels.Periodized.from_data(base, X)
waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(box, NUM_FEATURES)
prior = idm.kernels.FiniteRank(box, waves)
flat = idm.models.StructuredSGPR((X, (Y - mean) / scale), prior, waves, noise_variance=0.1)
idm.fit(flat, progress=False)
seconds["two columns"] = perf_counter() - start

# %% [markdown]
# ## Errors, everywhere and at the edges of the map
#
# The table holds errors against the field without noise, at points spread evenly over the sphere.
# The two last columns are the largest jump of the prediction across the date line, and among the
# longitudes of the north pole.

# %%
even = idm.sphere.latitude_longitude(rng.normal(size=[20_000, 3])).numpy()
regions = {
    "everywhere": np.full(len(even), True),
    "10° from date line": np.abs(even[:, 1]) > 170,
    "10° from a pole": np.abs(even[:, 0]) > 80,
}
latitudes = np.linspace(-89, 89, 90)
east, west = (np.stack([latitudes, np.full(90, end)], axis=1) for end in (180.0, -180.0))
pole = np.stack([np.full(90, 90.0), np.linspace(-180, 180, 90)], axis=1)
posteriors = {"globe": globe.posterior(), "two columns": flat.posterior()}
columns = [*regions, "jump, date line", "jump, north pole"]
print(f"{'RMSE in °C':14}{'seconds':>9}", *(f"{name:>19}" for name in columns))
for name, posterior in posteriors.items():
    error = posterior.predict_f(even)[0].numpy() * scale + mean - temperature(even)
    rmse = [np.sqrt(np.mean(error[rows] ** 2)) for rows in regions.values()]
    jump = scale * np.max(np.abs(posterior.predict_f(east)[0] - posterior.predict_f(west)[0]))
    at_pole = scale * np.ptp(posterior.predict_f(pole)[0])
    print(f"{name:14}{seconds[name]:9.1f}", *(f"{v:19.3f}" for v in [*rmse, jump, at_pole]))

# %% [markdown]
# Both models are good far from the edges. At the date line and at the poles the flat model is
# worse. There its prediction jumps by 2 degrees Celsius or more, while the field is continuous.
#
# ## Maps
#
# The black line is where the true temperature is 10 degrees Celsius.

# %%
latitude, longitude = np.arange(-90, 91, STEP), np.arange(-180, 180, STEP)
grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
shape = (len(latitude), len(longitude))
truth = temperature(grid).reshape(shape)
figure = plt.figure(figsize=(9, 8), layout="constrained")
for part, (name, posterior) in zip(figure.subfigures(2, 1), posteriors.items(), strict=True):
    error = posterior.predict_f(grid)[0].numpy().reshape(shape) * scale + mean - truth
    idm.plotting.globe(
        latitude,
        longitude,
        error,
        coastline=truth,
        coastline_level=10.0,
        title=f"error of the prediction: {name}",
        label="°C",
        figure=part,
        cmap="RdBu_r",
        vmin=-2,
        vmax=2,
    )
plt.show()

# %% [markdown]
# The errors of the globe model are equally small everywhere. The errors of the flat model are
# largest at the edges of the map (the date line) and at the poles (small discs).
