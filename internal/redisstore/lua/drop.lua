-- Notes that a key is thawed, and tells the others. The note outlives the freeze, so
-- that who was away learns of it.
-- KEYS: prefix. ARGV: key, instance, by, ms kept after.
local P, k, me, by = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = math.floor(us / 1000)
local f = P .. 'freeze:' .. k
local old = redis.call('HMGET', f, 'till', 'by', 'gone', 'rev')
local left = 0
if old[1] then
  left = math.max(tonumber(old[1]) - now, 0)
  if by ~= 'person' and old[2] == 'person' and left > 0 then
    return 0
  end
end
local rev = string.format('%.0f', math.max(us, (tonumber(old[4]) or 0) + 1))
redis.call('DEL', f)
redis.call('HSET', f, 'gone', string.format('%.0f', now), 'by', by, 'from', me, 'rev', rev)
local keep = left + tonumber(ARGV[4])
redis.call('PEXPIRE', f, string.format('%.0f', keep))
redis.call('ZADD', P .. 'freezes', string.format('%.0f', now + keep), k)
redis.call('PUBLISH', P .. 'news', cjson.encode({ n = 'thawed', k = k, from = me, by = by, rev = rev }))
return 1
