package detonation

import "github.com/loadout-dev/loadout/internal/sandbox/mountpoint"

// nodeFile is the path of a module that Node loads before a script. Versions of
// Node before 24 ignore the proxy, so the module records the requests of the
// standard functions.
const nodeFile = ".local/lib/trace.js"

// nodeOptions makes Node load nodeFile.
const nodeOptions = "--require=" + mountpoint.Work + "/" + nodeFile

// nodeTrace records the URL, host and data of requests like a shim. Requests are
// sent to no host.
const nodeTrace = `'use strict';
const fs = require('fs'), http = require('http'), https = require('https'), net = require('net'), dns = require('dns');
const file = (process.env.LOADOUT_WORK || '/work') + '/` + traceFile + `';
const append = fs.appendFileSync, inProxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY).port;
const record = (target, data) => {
  try { append(file, 'node ' + target + '\n' + (data === undefined || data === null ? '' : Buffer.isBuffer(data) ? data.toString('latin1') : String(data)).slice(0, 262144) + '\x1e'); } catch {}
};
const address = (scheme, a) => {
  const o = a.find((x) => x && typeof x === 'object' && !(x instanceof URL)) || {};
  if (typeof a[0] === 'string' || a[0] instanceof URL) return String(a[0]) + ' ' + JSON.stringify(o.headers || {});
  return scheme + '//' + (o.hostname || o.host || 'localhost') + (o.path || '/') + ' ' + JSON.stringify(o.headers || {});
};
for (const [module, scheme] of [[http, 'http:'], [https, 'https:']]) {
  const request = module.request;
  module.request = function (...a) {
    const target = address(scheme, a), r = request.apply(module, a), write = r.write, end = r.end;
    record(target);
    r.write = function (data, ...rest) { record(target, data); return write.call(r, data, ...rest); };
    r.end = function (data, ...rest) { if (data && typeof data !== 'function') record(target, data); return end.call(r, data, ...rest); };
    return r;
  };
  module.get = function (...a) { const r = module.request(...a); r.end(); return r; };
}
const fetch = globalThis.fetch;
if (fetch) globalThis.fetch = function (input, init) {
  const body = init && init.body;
  record((input && input.url || String(input)) + ' ' + JSON.stringify(init && init.headers || {}),
    body && typeof body === 'object' && !Buffer.isBuffer(body) && ArrayBuffer.isView(body) ? Buffer.from(body.buffer) : body);
  return fetch.apply(this, arguments);
};
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...a) {
  const o = Array.isArray(a[0]) ? a[0][0] : typeof a[0] === 'object' ? a[0] : {port: a[0], host: a[1]};
  if (o && o.host && String(o.port) !== inProxy) record('tcp://' + o.host + ':' + o.port);
  return connect.apply(this, a);
};
for (const owner of [dns, dns.promises]) for (const name of ['lookup', 'resolve', 'resolve4', 'resolve6', 'resolveTxt']) {
  const real = owner[name];
  if (real) owner[name] = function (host, ...rest) { record('dns://' + host); return real.call(owner, host, ...rest); };
}
`
