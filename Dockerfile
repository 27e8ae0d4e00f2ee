# The scheduler and its commands. No Java: Kafka is another container.
FROM python:3.13.9-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY streams streams
COPY schemas schemas
COPY config config
RUN python -m venv /opt/fairstream && /opt/fairstream/bin/pip install --no-cache-dir '.[scheduler]'

FROM python:3.13.9-slim-bookworm
# A number and not a name, so that an orchestrator can see that it is not root.
RUN useradd --uid 10001 --no-create-home --home-dir /nonexistent fairstream
COPY --from=build /opt/fairstream /opt/fairstream
ENV PATH=/opt/fairstream/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 10001
ENTRYPOINT ["fairstream"]
CMD ["--help"]
