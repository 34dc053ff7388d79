# The server in a small image: `docker build -t idemd . && docker run -p 6379:6379 idemd`.

FROM debian:bookworm-slim AS build
WORKDIR /src
COPY dev ./
RUN ./dev setup build
COPY . .
RUN ./dev server \
 && cmake --install build/release --strip --prefix /image/usr/local \
 && install -m 755 packaging/entrypoint.sh packaging/healthcheck.sh /image/usr/local/bin/ \
 && ./dev runtime-packages build/release/idemd > /image/packages

FROM debian:bookworm-slim
COPY --from=build /image/packages /usr/local/share/idemd/packages
RUN apt-get update \
 && xargs apt-get install -y --no-install-recommends < /usr/local/share/idemd/packages \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 999 idemd \
 && useradd --system --uid 999 --gid idemd --home-dir /data --shell /usr/sbin/nologin idemd \
 && install -d -o idemd -g idemd -m 700 /data
COPY --from=build /image/usr/local/bin/ /usr/local/bin/
USER idemd
VOLUME /data
WORKDIR /data
EXPOSE 6379
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["healthcheck.sh"]
ENTRYPOINT ["entrypoint.sh"]
CMD ["idemd"]
