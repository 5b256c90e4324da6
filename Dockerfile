# Two stages: `base` has system packages and the user (.devcontainer builds on it), the last one
# the checkout with the exact versions of constraints.txt.
FROM python:3.11-slim-bookworm AS base
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# make and git have no influence on results, so their versions are free.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 --user-group --shell /bin/bash repro
# by number, so that a cluster can tell that it is not root
USER 1000:1000

FROM base
USER 0:0
# repro refuses a cache that other users can write to.
RUN install --directory --owner repro --group repro --mode 700 /cache /home/repro/checkout
USER 1000:1000
ENV REPRO_CACHE_DIR=/cache \
    PATH=/home/repro/checkout/.venv/bin:$PATH
WORKDIR /home/repro/checkout
COPY --chown=1000:1000 . .
RUN make .venv/.core
VOLUME /cache
CMD ["make", "figures"]
