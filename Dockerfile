# The image: Node, Postern and the libraries that Node needs, and nothing else: no shell, no package manager.
ARG NODE=node:26.10.0-bookworm-slim

FROM ${NODE} AS build
WORKDIR /build
COPY . .
RUN npm ci --ignore-scripts && npm run build
RUN rm -rf node_modules && npm ci --omit=dev --workspaces=false --ignore-scripts

# What the dynamic linker loads for Node, a user, and how names are resolved.
FROM ${NODE} AS root
RUN mkdir -p /root-fs/usr/local/bin /root-fs/etc /root-fs/data /root-fs/app \
  && node="$(node -p process.execPath)" \
  && cp "$node" /root-fs/usr/local/bin/node \
  && { ldd "$node" | awk '$3 ~ "^/" { print $3 } $1 ~ "^/" { print $1 }'; \
       find / -xdev \( -name 'libnss_dns.so.2' -o -name 'libnss_files.so.2' -o -name 'libresolv.so.2' \) 2>/dev/null; } \
     | sort -u | xargs -I FILE cp -L --parents FILE /root-fs \
  && echo 'postern:x:65532:65532::/data:/' > /root-fs/etc/passwd \
  && echo 'postern:x:65532:' > /root-fs/etc/group \
  && echo 'hosts: files dns' > /root-fs/etc/nsswitch.conf \
  && chown -R 65532:65532 /root-fs/data && chmod 0700 /root-fs/data
COPY --from=build /build/dist /root-fs/app
COPY --from=build /build/node_modules /root-fs/app/node_modules

FROM scratch
LABEL org.opencontainers.image.title="Postern" \
  org.opencontainers.image.description="Queues authentication emails and delivers them before their links expire" \
  org.opencontainers.image.licenses="MIT"
COPY --from=root /root-fs /
USER 65532:65532
WORKDIR /data
ENV PATH=/usr/local/bin \
  POSTERN_API_LISTEN=0.0.0.0:4020 \
  POSTERN_LINKS_LISTEN=0.0.0.0:4021 \
  POSTERN_OPS_LISTEN=0.0.0.0:4023
VOLUME /data
EXPOSE 4020 4021 4023
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["node", "/app/bin/healthcheck.js"]
ENTRYPOINT ["node", "--disable-sigusr1", "--", "/app/bin/postern.js"]
CMD ["serve"]
