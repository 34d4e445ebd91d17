# crossgraft on CPUs, for machines without a network: docs/how-to/run-it-in-a-container.md
# Two stages: what compiles and downloads stays in the first one.
FROM python:3.12.11-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/crossgraft
ENV PATH=/opt/crossgraft/bin:$PATH
# torch without CUDA comes from its own index, everything else at the versions that the tests run with
COPY requirements-ci.lock ./
RUN pip install --no-cache-dir torch torchvision --index-url https://download.pytorch.org/whl/cpu
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --constraint requirements-ci.lock ".[medical,dicom-sr,export,weights]"

FROM python:3.12.11-slim-bookworm
LABEL org.opencontainers.image.title="crossgraft" \
      org.opencontainers.image.description="Select, adapt and audit pretrained vision models. Research use, not a medical device." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/crossgraft /opt/crossgraft
# Nothing is looked up at run time, whatever a library would like to.
ENV PATH=/opt/crossgraft/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    CROSSGRAFT_CACHE=/study/.cache \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1
RUN useradd --create-home --uid 10001 crossgraft && mkdir /study && chown crossgraft /study
USER 10001
WORKDIR /study
ENTRYPOINT ["crossgraft"]
CMD ["--help"]
