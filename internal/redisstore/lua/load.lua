-- All that is held of freezes, as JSON lines: as the news that made it.
-- KEYS: prefix. ARGV: at most so many.
local P = KEYS[1]
local t = redis.call('TIME')
local now = math.floor((t[1] * 1000000 + t[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', P .. 'freezes', '-inf', string.format('%.0f', now))
local all = {}
for _, k in ipairs(redis.call('ZREVRANGE', P .. 'freezes', 0, tonumber(ARGV[1]) - 1)) do
  local r = redis.call('HMGET', P .. 'freeze:' .. k, 'till', 'length', 'since', 'by', 'from', 'why', 'gone', 'rev', 'trial', 'trialrev')
  if r[8] then
    local one = { k = k, by = r[4], from = r[5], rev = r[8], trial = r[9] or '', trialrev = r[10] or '0' }
    if r[7] then
      one.n, one.age = 'thawed', now - tonumber(r[7])
    else
      one.n, one.left, one.length, one.age, one.why = 'froze', tonumber(r[1]) - now, tonumber(r[2]), now - tonumber(r[3]), r[6]
    end
    all[#all + 1] = cjson.encode(one)
  end
end
return all
