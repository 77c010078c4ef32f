// The objects that a script may use. This file runs once, when a state is made, with all of the
// engine's own objects. It removes those that make code or outlive a call, and freezes the rest.
(function (natives) {
  "use strict";
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply, ownKeys } = Reflect;
  const { isArray } = Array;
  const { fromCharCode } = String;
  const RealProxy = Proxy;

  // The longest list. It takes 16 bytes for each element, and functions that read all of a list
  // cannot be interrupted.
  const LENGTH_MAX = 1 << 22;

  function replace(owner, name, make) {
    const own = owner[name];
    if (typeof own !== "function") return;
    const made = { [name](...given) { return make(own, this, given); } }[name];
    defineProperty(owner, name, { value: made, writable: true, configurable: true });
  }

  function check(list) {
    if (!isArray(list)) throw new TypeError("takes a list of its own");
    if (list.length > LENGTH_MAX) throw new RangeError(`a list of ${list.length} elements`);
  }

  for (const name of [
    "concat", "copyWithin", "fill", "flat", "join", "reverse", "shift", "slice", "sort", "splice",
    "toLocaleString", "toReversed", "toSorted", "toSpliced", "toString", "unshift", "with",
    "includes", "indexOf", "lastIndexOf",
  ]) {
    replace(Array.prototype, name, (own, list, given) => {
      check(list);
      if (name === "concat") given.forEach((it) => isArray(it) && check(it));
      return apply(own, list, given);
    });
  }

  // A search compares the wanted text at each place of the other text.
  for (const name of ["includes", "indexOf", "lastIndexOf", "replace", "replaceAll", "split"]) {
    replace(String.prototype, name, (own, text, given) => {
      if (typeof text !== "string") throw new TypeError(`${name}: takes a text`);
      if (!(given[0] instanceof RegExp) && given.length > 0) given[0] = String(given[0]);
      const sought = typeof given[0] === "string" ? given[0].length : 1;
      natives.spend(text.length * sought / 100);
      return apply(own, text, given);
    });
  }

  // A property that is set on an object hides the inherited one, even if that one is frozen.
  for (const proto of [Object.prototype, Error.prototype]) {
    for (const key of ownKeys(proto)) {
      const { value, configurable } = getOwnPropertyDescriptor(proto, key);
      if (value === undefined || !configurable) continue;
      const set = function (it) {
        if (this === proto) throw new TypeError(`${String(key)} cannot be changed`);
        const own = { value: it, writable: true, enumerable: true, configurable: true };
        defineProperty(this, key, own);
      };
      defineProperty(proto, key, { get: () => value, set, enumerable: false });
    }
  }

  function forbidden() {
    throw new TypeError("code cannot be made while code runs");
  }
  const functions = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const it of functions) {
    defineProperty(getPrototypeOf(it), "constructor", { value: forbidden });
  }
  for (const name of [
    "eval", "Function", "Proxy", "Promise", "WeakRef", "FinalizationRegistry", "Atomics",
    "SharedArrayBuffer", "queueMicrotask", "performance", "Iterator", "navigator",
  ]) {
    delete globalThis[name];
  }

  for (const [namespace, name, at] of natives.library) {
    if (namespace && !globalThis[namespace]) globalThis[namespace] = {};
    const owner = namespace ? globalThis[namespace] : globalThis;
    owner[name] = (...given) => natives.call(at, given);
  }

  const values = new RealProxy({}, {
    get: (_, name) => typeof name === "string" ? natives.value(name) : undefined,
    set(_, name, value) {
      natives.set(String(name), value, latin);
      return true;
    },
  });
  const env = new RealProxy({}, {
    get: (_, name) => typeof name === "string" ? natives.env(name) : undefined,
    set() { throw new TypeError("env cannot be changed"); },
    defineProperty() { throw new TypeError("env cannot be changed"); },
  });

  // A request. Each field is made when the script reads it.
  function request(names) {
    const made = {};
    for (const name of names) {
      const is = (value) => {
        defineProperty(made, name, { value, writable: true, enumerable: true, configurable: true });
        return value;
      };
      defineProperty(made, name, {
        get: () => is(natives.field(name)), set: is, enumerable: true, configurable: true,
      });
    }
    return made;
  }

  // Bytes as a text with one character for each byte.
  function latin(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 4096) {
      text += apply(fromCharCode, null, bytes.subarray(at, at + 4096));
    }
    return text;
  }

  const seen = new Set();
  function seal(it) {
    if (it === null || (typeof it !== "object" && typeof it !== "function") || seen.has(it)) return;
    seen.add(it);
    freeze(it);
    for (const key of ownKeys(it)) {
      const { value, get, set } = getOwnPropertyDescriptor(it, key);
      [value, get, set].forEach(seal);
    }
    seal(getPrototypeOf(it));
  }
  [globalThis, ...functions, [][Symbol.iterator](), ""[Symbol.iterator](), new Map().entries(),
    new Set().entries(), "".matchAll(/a/g), (function* () {})()].forEach(seal);

  return {
    run: (body, packet, names, flow) => body(names ? request(names) : packet, values, env, flow),
    latin,
  };
})
