# Two images: `service` (the default, last) and `spark` (the jobs; adds a JVM and PySpark).
#   docker build -t sluice .
#   docker build -t sluice-spark --target spark .
# Tried: what each step does, in a plain virtual environment (tests/integration/image). Not tried: a Docker engine.
#
# An image with a transform of your own:
#   FROM <registry>/sluice:<tag>
#   COPY my_transform.py /opt/sluice/transforms/      # then DOCUMENT_TRANSFORM=my_transform:function
#
# The bases are pinned to a patch version; for a pin to the byte give --build-arg PYTHON_IMAGE=python@sha256:... .
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

# ---- Packages: every version is that of constraints.txt. service/local is not in the context (.dockerignore).
# No BuildKit features, since `az acr build` has none.
FROM ${PYTHON_IMAGE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY service ./service
RUN pip wheel --constraint constraints.txt --wheel-dir /wheels ".[azure-monitor]"
RUN python -m venv /opt/sluice/venv \
    && /opt/sluice/venv/bin/pip install --no-index --find-links /wheels "sluice[azure-monitor]" \
    && /opt/sluice/venv/bin/pip uninstall --yes pip setuptools

FROM packages AS spark-packages
RUN pip wheel --constraint constraints.txt --wheel-dir /wheels ".[azure-monitor,spark]"
RUN python -m venv --clear /opt/sluice/venv \
    && /opt/sluice/venv/bin/pip install --no-index --find-links /wheels "sluice[azure-monitor,spark]" \
    && /opt/sluice/venv/bin/pip uninstall --yes pip setuptools

# Jars beyond PySpark's own: deploy/spark/pom.xml says which, and why.
FROM ${PYTHON_IMAGE} AS spark-jars
RUN apt-get update && apt-get install --yes --no-install-recommends maven
COPY deploy/spark/pom.xml ./
RUN mvn --batch-mode --quiet dependency:copy-dependencies -DoutputDirectory=/jars

# ---- What both images share.
FROM ${PYTHON_IMAGE} AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sluice" \
      org.opencontainers.image.description="Moves records from Azure Event Hubs into Azure Cosmos DB at exactly the rate you choose" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Byte code is made when packages are installed; nothing is written while running, so a read-only root works.
ENV PATH=/opt/sluice/venv/bin:$PATH \
    PYTHONPATH=/opt/sluice/transforms \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    HTTP_HOST=0.0.0.0 \
    HTTP_PORT=8080
RUN mkdir --parents /opt/sluice/transforms
WORKDIR /opt/sluice

# ---- The Spark jobs.
FROM base AS spark
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY --from=spark-packages /opt/sluice/venv /opt/sluice/venv
COPY --from=spark-jars /jars /opt/sluice/venv/lib/python3.11/site-packages/pyspark/jars
COPY deploy/spark/job.py deploy/spark/main.py /opt/sluice/
ENV JAVA_HOME=/usr/lib/jvm/default-java \
    PYSPARK_PYTHON=/opt/sluice/venv/bin/python
RUN ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /usr/lib/jvm/default-java
USER 10001:10001
ENTRYPOINT ["python", "-m", "service.jobs"]
CMD ["--help"]

# ---- The service: no JVM, no local stack.
FROM base AS service
COPY --from=packages /opt/sluice/venv /opt/sluice/venv
USER 10001:10001
EXPOSE 8080
# For Docker and compose; Container Apps uses the probes of bicep/modules/app.bicep.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['HTTP_PORT'] + '/healthz', timeout=4)"]
# Exec form and no shell: SIGTERM reaches Python.
STOPSIGNAL SIGTERM
ENTRYPOINT ["sluice"]
CMD ["run"]
