-- What a script may use. It runs once, when a state is made, with all of Lua's own functions; of
-- these a script sees only what stands in 'base', and it can change none of it.
local natives = ...
local pcall, error, setmetatable, rawsort = pcall, error, setmetatable, table.sort

local function sealed(name, members)
  return setmetatable({}, {
    __index = members,
    __newindex = function() error(name .. " cannot be changed", 2) end,
    __metatable = false,
  })
end

-- A script that was stopped must not go on in whoever caught the error.
local function unless_stopped(...)
  natives.spend(1)
  return ...
end

-- A comparison in Lua is counted, one inside the library is not.
local function less(a, b) return a < b end

local strings = {
  byte = string.byte, char = string.char, format = string.format, len = string.len,
  lower = string.lower, reverse = string.reverse, sub = string.sub, upper = string.upper,
  rep = natives.rep, find = natives.find, match = natives.match, gmatch = natives.gmatch,
  gsub = natives.gsub,
}
getmetatable("").__index = strings
getmetatable("").__metatable = false

local base = {
  _VERSION = _VERSION, assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs,
  rawequal = rawequal, rawlen = rawlen, select = select, tonumber = tonumber, tostring = tostring,
  type = type,
  pcall = function(f, ...) return unless_stopped(pcall(f, ...)) end,
  string = sealed("string", strings),
  table = sealed("table", {
    concat = table.concat, insert = table.insert, pack = table.pack, remove = table.remove,
    unpack = table.unpack,
    sort = function(list, before) return rawsort(list, before or less) end,
  }),
  math = sealed("math", {
    abs = math.abs, ceil = math.ceil, cos = math.cos, exp = math.exp, floor = math.floor,
    fmod = math.fmod, huge = math.huge, log = math.log, max = math.max,
    maxinteger = math.maxinteger, min = math.min, mininteger = math.mininteger, modf = math.modf, pi = math.pi,
    random = math.random, sin = math.sin, sqrt = math.sqrt, tan = math.tan,
    tointeger = math.tointeger, type = math.type, ult = math.ult,
  }),
  utf8 = sealed("utf8", {
    char = utf8.char, charpattern = utf8.charpattern, codepoint = utf8.codepoint,
    codes = utf8.codes, len = utf8.len, offset = utf8.offset,
  }),
  json = sealed("json", {
    decode = natives.decode, encode = natives.encode, list = natives.list, null = natives.null,
  }),
}

local env = setmetatable({}, {
  __index = function(_, name) return natives.env(name) end,
  __newindex = function() error("env cannot be changed", 2) end,
  __metatable = false,
})
local globals = {__index = base, __metatable = false}

return function(body, packet, values, flow)
  return pcall(body, setmetatable({}, globals), packet, values, env, flow)
end
