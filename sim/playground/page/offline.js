// Keeps the page at hand without a network, once it was loaded: all its files, of one version.
// What the browser has just loaded is asked for again only if the server has something newer.
"use strict";
importScripts("files.js");
const { version, files } = self.CLRSIM;
const PREFIX = "clrsim-playground-";
const name = PREFIX + version;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(name).then((cache) => cache.addAll(files.map((it) => new Request(it, { cache: "no-cache" })))).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = (names) => Promise.all(names.filter((it) => it.startsWith(PREFIX) && it !== name).map((it) => caches.delete(it)));
  event.waitUntil(caches.keys().then(old).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const found = caches.open(name).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(found.then((it) => it ?? fetch(event.request)));
});
