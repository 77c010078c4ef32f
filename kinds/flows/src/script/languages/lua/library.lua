-- The functions that a script may use. This file runs once, when a state is made, with all of Lua's
-- own functions. A script sees only those that are listed in 'base', and can change none of them.
local natives = ...
local pcall, error, setmetatable, select, type = pcall, error, setmetatable, select, type
local tonumber, min, max, math_type, rawsort = tonumber, math.min, math.max, math.type, table.sort
local raw_find = string.find
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

-- After a script was stopped, no code of it that catches the error may go on.
local function unless_stopped(...)
  natives.spend(1)
  return ...
end

-- Lua's own functions do not look at a clock. So one call has a limit. A call that is not small
-- also costs instructions: by the bytes of text, or by the values that it moves.
local FREE <const> = 256

local function handle(len)
  if len > FREE then natives.handle(len) end
end

local function move(count)
  if count > FREE then natives.spend(count) end
end

-- An error names the line of the script that called, not our line. Lack of memory is recognised by
-- its text.
local function told(fine, ...)
  if fine then return ... end
  error(..., ... == "not enough memory" and 0 or 2)
end

local function call(f, ...) return told(pcall(f, ...)) end

-- For functions that read the whole of their first argument, if it is a text.
local function through(f)
  return function(text, ...)
    if type(text) == "string" then handle(#text) end
    return call(f, text, ...)
  end
end

-- For functions that read a text from their second argument to their third; without a third, they
-- read one place.
local function between(f)
  return function(text, from, to, ...)
    if to and to ~= from and type(text) == "string" then handle(#text) end
    return call(f, text, from, to, ...)
  end
end

local function sub(text, from, to)
  if type(text) == "string" and math_type(from) == "integer" then
    -- Only the part is counted, because a script that splits a text calls once for each part.
    local last = math_type(to) == "integer" and to or -1
    handle(min(#text, max((last < 0 and #text or 0) + last - (from < 0 and #text or 0) - from, 0)))
  end
  return call(raw.sub, text, from, to)
end

-- '%q' reads its text byte by byte, and writes some bytes as four.
local QUOTE <const> = 4

local function format(pattern, ...)
  local len = type(pattern) == "string" and #pattern or 0
  local quotes = len > 0 and raw_find(pattern, "%q", 1, true)
  for at = 1, select("#", ...) do
    local value = select(at, ...)
    if type(value) == "string" then
      len = len + #value
      if quotes then move(QUOTE * #value) end
    end
  end
  handle(len)
  return call(raw.format, pattern, ...)
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

-- The values behind the place move.
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

-- A comparison in Lua is counted. A comparison inside Lua's own library is not.
local function less(a, b) return a < b end

-- Lua's own library must not call a function of the script, because there it could not be
-- interrupted. So this file sorts lists (by merging) and replaces in texts (match by match).
local SORTED_AT_ONCE <const> = 4096

local function merge(from, into, len, width, before)
  for first = 1, len, 2 * width do
    local left, right = first, min(first + width, len + 1)
    local middle, last = right, min(first + 2 * width, len + 1)
    for to = first, last - 1 do
      if left < middle and (right >= last or not before(from[right], from[left])) then
        into[to], left = from[left], left + 1
      else
        into[to], right = from[right], right + 1
      end
    end
  end
end

local function sort(list, before)
  if type(list) ~= "table" or (before == nil and #list <= SORTED_AT_ONCE) then
    return call(rawsort, list, before or less)
  end
  local len, width, from, into = #list, 1, list, {}
  while width < len do
    merge(from, into, len, width, before or less)
    from, into, width = into, from, 2 * width
  end
  if from ~= list then
    for at = 1, len do list[at] = from[at] end
  end
end

local function replaced(with, from, to, ...)
  if from then return from, to, with(...) end
end

local function gsub(text, pattern, with, most)
  if type(with) ~= "function" then return call(natives.gsub, text, pattern, with, most) end
  local parts, count, at, last, from, value = {}, 0, 0, nil, nil, nil
  while not most or count < most do
    from, last, value = replaced(with, call(natives.seek, text, pattern, at, last))
    if not from then break end
    if value == nil or value == false then
      value = sub(text, from + 1, last)
    elseif type(value) ~= "string" and type(value) ~= "number" then
      error("string.gsub: cannot put in a " .. type(value), 2)
    end
    parts[#parts + 1], parts[#parts + 2] = sub(text, at + 1, from), value
    count, at = count + 1, last
    if raw.sub(pattern, 1, 1) == "^" then break end
  end
  parts[#parts + 1] = sub(text, at + 1)
  return concat(parts), count
end

local strings = {
  byte = between(string.byte), char = string.char, format = format, len = string.len,
  lower = through(string.lower), reverse = through(string.reverse), sub = sub,
  upper = through(string.upper), rep = natives.rep, find = natives.find, match = natives.match,
  gmatch = natives.gmatch, gsub = gsub,
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
    sort = sort,
  }),
  math = sealed("math", {
    abs = math.abs, acos = math.acos, asin = math.asin, atan = math.atan, ceil = math.ceil,
    cos = math.cos, deg = math.deg, exp = math.exp, floor = math.floor, fmod = math.fmod,
    huge = math.huge, log = math.log, max = math.max, maxinteger = math.maxinteger,
    min = math.min, mininteger = math.mininteger, modf = math.modf, pi = math.pi, rad = math.rad,
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

-- The functions that expressions have too.
for namespace, members in pairs(natives.shared) do
  if namespace ~= "" then base[namespace] = sealed(namespace, members) end
end
for name, member in pairs(natives.shared[""]) do base[name] = member end

-- A variable of the environment is read once, and keeps that value.
local known = {}
local env = setmetatable({}, {
  __index = function(_, name)
    local value = known[name]
    if value == nil then
      value = natives.env(name)
      known[name] = value
    end
    return value
  end,
  __newindex = function() error("env cannot be changed", 2) end,
  __metatable = false,
})
local globals = {__index = base, __metatable = false}

local function run(body, packet, values, flow)
  return pcall(body, setmetatable({}, globals), packet, values, env, flow)
end

return run, base
