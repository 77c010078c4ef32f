-- What a script may use. It runs once, when a state is made, with all of Lua's own functions; of
-- these a script sees only what stands in 'base', and it can change none of it.
local natives = ...
local pcall, error, setmetatable, select, type = pcall, error, setmetatable, select, type
local tonumber, min, max, math_type, rawsort = tonumber, math.min, math.max, math.type, table.sort
local raw = {
  sub = string.sub, format = string.format, offset = utf8.offset, concat = table.concat,
  insert = table.insert, remove = table.remove, unpack = table.unpack,
}

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

-- Lua's own functions see no clock. So one call has a limit and, past what costs nothing worth
-- counting, a price: by bytes of text, or by values that it moves.
local FREE <const> = 256

local function handle(len)
  if len > FREE then natives.handle(len) end
end

local function move(count)
  if count > FREE then natives.spend(count) end
end

-- An error stands where the script called, not where we did. Want of memory is known by its words.
local function told(fine, ...)
  if fine then return ... end
  error(..., ... == "not enough memory" and 0 or 2)
end

local function call(f, ...) return told(pcall(f, ...)) end

-- A function that goes through the whole of its first argument, if that is a text.
local function through(f)
  return function(text, ...)
    if type(text) == "string" then handle(#text) end
    return call(f, text, ...)
  end
end

-- One that goes through a text from its second argument to its third; without that, to one place.
local function between(f)
  return function(text, from, to, ...)
    if to and to ~= from and type(text) == "string" then handle(#text) end
    return call(f, text, from, to, ...)
  end
end

local function sub(text, from, to)
  if type(text) == "string" and math_type(from) == "integer" then
    -- No more than is asked for: who takes a text apart pays for each part.
    local last = math_type(to) == "integer" and to or -1
    handle(min(#text, max((last < 0 and #text or 0) + last - (from < 0 and #text or 0) - from, 0)))
  end
  return call(raw.sub, text, from, to)
end

local function format(...)
  local len = 0
  for at = 1, select("#", ...) do
    local value = select(at, ...)
    if type(value) == "string" then len = len + #value end
  end
  handle(len)
  return call(raw.format, ...)
end

local function offset(text, count, ...)
  if type(text) == "string" and math_type(count) == "integer" then
    handle(min(#text, max(count, -count)))
  end
  return call(raw.offset, text, count, ...)
end

local function concat(list, separator, from, to)
  if type(list) == "table" then
    local len, each = 0, type(separator) == "string" and #separator or 0
    for at = tonumber(from) or 1, tonumber(to) or #list do
      local value = list[at]
      len = len + each + (type(value) == "string" and #value or 0)
    end
    handle(len)
  end
  return call(raw.concat, list, separator, from, to)
end

-- What stands behind the place moves.
local function shift(list, place)
  if type(list) == "table" and math_type(place) == "integer" then move(#list - place) end
end

local function insert(list, ...)
  if select("#", ...) > 1 then shift(list, (...)) end
  return call(raw.insert, list, ...)
end

local function remove(list, ...)
  shift(list, (...))
  return call(raw.remove, list, ...)
end

local function unpack(list, from, to)
  if type(list) == "table" then move((tonumber(to) or #list) - (tonumber(from) or 1)) end
  return call(raw.unpack, list, from, to)
end

-- A comparison in Lua is counted, one inside the library is not.
local function less(a, b) return a < b end

local strings = {
  byte = between(string.byte), char = string.char, format = format, len = string.len,
  lower = through(string.lower), reverse = through(string.reverse), sub = sub,
  upper = through(string.upper), rep = natives.rep, find = natives.find, match = natives.match,
  gmatch = natives.gmatch, gsub = natives.gsub,
}
getmetatable("").__index = strings
getmetatable("").__metatable = false

local base = {
  _VERSION = _VERSION, assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs,
  rawequal = rawequal, rawlen = rawlen, select = select, tonumber = through(tonumber),
  tostring = tostring,
  type = type,
  pcall = function(f, ...) return unless_stopped(pcall(f, ...)) end,
  string = sealed("string", strings),
  table = sealed("table", {
    concat = concat, insert = insert, pack = table.pack, remove = remove, unpack = unpack,
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
    char = utf8.char, charpattern = utf8.charpattern, codepoint = between(utf8.codepoint),
    codes = utf8.codes, len = through(utf8.len), offset = offset,
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
