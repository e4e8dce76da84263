-- Holds a freeze, unless what is held does not yield, and tells the others.
-- KEYS: prefix. ARGV: key, instance, by, ms left, ms length, ms age, reason, ms kept after.
local P, k, me, by = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = math.floor(us / 1000)
local till = now + tonumber(ARGV[4])
local f = P .. 'freeze:' .. k
local old = redis.call('HMGET', f, 'till', 'by', 'gone', 'rev')
if by ~= 'person' and old[1] and not old[3] then
  local held = tonumber(old[1])
  -- Less than a moment is no extension: it is the same freeze, told again.
  if held > now and (old[2] == 'person' or till <= held + 50) then
    return 0
  end
end
-- A freeze that is older than the thaw has been lifted by it: whoever tells of it, such as
-- an instance that saw the store empty in between, has not heard of the thaw yet.
if old[3] and now - tonumber(ARGV[6]) < tonumber(old[3]) then
  return 0
end
local rev = string.format('%.0f', math.max(us, (tonumber(old[4]) or 0) + 1))
redis.call('DEL', f)
redis.call('HSET', f, 'till', string.format('%.0f', till), 'length', ARGV[5], 'since', string.format('%.0f', now - tonumber(ARGV[6])),
  'by', by, 'from', me, 'why', ARGV[7], 'rev', rev)
local keep = tonumber(ARGV[4]) + tonumber(ARGV[8])
redis.call('PEXPIRE', f, string.format('%.0f', keep))
redis.call('ZADD', P .. 'freezes', string.format('%.0f', now + keep), k)
redis.call('PUBLISH', P .. 'news', cjson.encode({ n = 'froze', k = k, from = me, by = by, left = tonumber(ARGV[4]),
  length = tonumber(ARGV[5]), age = tonumber(ARGV[6]), why = ARGV[7], rev = rev }))
return 1
