-- Notes that a key's trial is with an instance, or no longer, and tells the others.
-- KEYS: prefix. ARGV: key, instance, 1 or 0.
local P, k, me = KEYS[1], ARGV[1], ARGV[2]
local t = redis.call('TIME')
local f = P .. 'freeze:' .. k
local rev = string.format('%.0f', math.max(t[1] * 1000000 + t[2], (tonumber(redis.call('HGET', f, 'trialrev')) or 0) + 1))
if ARGV[3] == '1' then
  if redis.call('EXISTS', f) == 1 then
    redis.call('HSET', f, 'trial', me, 'trialrev', rev)
  end
  redis.call('PUBLISH', P .. 'news', cjson.encode({ n = 'trying', k = k, from = me, rev = rev }))
else
  if redis.call('HGET', f, 'trial') == me then
    redis.call('HSET', f, 'trial', '', 'trialrev', rev)
  end
  redis.call('PUBLISH', P .. 'news', cjson.encode({ n = 'tried', k = k, from = me, rev = rev }))
end
return 1
