# The gateway as a container, from the npm package that `npm run release` makes; the Dockerfile beside it compiles a
# clone instead. Build it with the release as its folder:
#   docker build -f deploy/package.dockerfile -t lockgate dist/release
FROM node:20-bookworm-slim AS build
WORKDIR /opt/lockgate
# The compiler is used where no prebuilt SQLite driver can be downloaded.
RUN apt-get update && apt-get install -y --no-install-recommends g++ make python3
COPY lockgate-*.tgz ./lockgate.tgz
RUN npm install --ignore-scripts ./lockgate.tgz && npm rebuild better-sqlite3 && rm lockgate.tgz

FROM node:20-bookworm-slim
WORKDIR /opt/lockgate
COPY --from=build /opt/lockgate/node_modules ./node_modules
RUN ln -s /opt/lockgate/node_modules/.bin/lockgate /usr/local/bin/lockgate
RUN install -d -o node -g node -m 700 /var/lib/lockgate
# Nothing else is written, so the root may be read-only. Operators' commands run inside the container.
ENV NODE_ENV=production LOCKGATE_DATA=/var/lib/lockgate LOCKGATE_MQTT_HOST=0.0.0.0 LOCKGATE_HTTP_HOST=0.0.0.0
VOLUME /var/lib/lockgate
EXPOSE 1883 8883 8080
USER node
# The exec form: node gets SIGTERM itself, and stops within 10 s. SIGHUP rereads the certificate.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["node", "node_modules/lockgate/deploy/health-check.mjs"]
CMD ["node", "node_modules/lockgate/dist/program/main.js", "serve"]
