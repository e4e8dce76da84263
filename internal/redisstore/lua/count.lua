-- Takes in what an instance had of limited keys, then grants or refuses what it asks
-- for: two integers an ask, 0 and 0 where it is granted, else which limit and for how
-- many ms (1 max_parallel, 2 rpm, 3 tpm).
-- What began and was spent is kept by the second, for 61 of them: a limit is kept in
-- any 60 s, and never longer than a second too long.
-- KEYS: prefix. ARGV: instance, ms that an instance lives after its beat, JSON.
local P, me = KEYS[1], ARGV[1]
local t = redis.call('TIME')
local sec = tonumber(t[1])
local now = math.floor((t[1] * 1000000 + t[2]) / 1000)
local life = tonumber(ARGV[2])
local req = cjson.decode(ARGV[3])

local function live(name)
  if name == me then return true end
  local at = redis.call('ZSCORE', P .. 'alive', name)
  return at and tonumber(at) >= now - life
end

for _, u in ipairs(req.had) do
  local open, spans = P .. 'open:' .. u.k, P .. 'minute:' .. u.k
  local before = tonumber(redis.call('HGET', open, me) or '0')
  if u.open > 0 then
    redis.call('HSET', open, me, u.open)
    redis.call('EXPIRE', open, 60)
  else
    redis.call('HDEL', open, me)
  end
  if u.open < before and redis.call('DEL', P .. 'wanted:' .. u.k) == 1 then
    redis.call('PUBLISH', P .. 'news', cjson.encode({ n = 'room', from = me }))
  end
  for _, h in ipairs(u.had) do
    local s = string.format('%.0f', sec - h[1])
    if h[2] > 0 then redis.call('HINCRBY', spans, 'r' .. s, h[2]) end
    if h[3] > 0 then redis.call('HINCRBY', spans, 't' .. s, string.format('%.0f', h[3])) end
  end
  if #u.had > 0 then redis.call('EXPIRE', spans, 70) end
end

-- The seconds of the last minute with what they hold of a kind, the oldest first, and
-- the sum; older ones are deleted.
local function minute(spans, kind)
  local list, sum = {}, 0
  local all = redis.call('HGETALL', spans)
  for i = 1, #all, 2 do
    local s = tonumber(string.sub(all[i], 2))
    if s < sec - 60 then
      redis.call('HDEL', spans, all[i])
    elseif string.sub(all[i], 1, 1) == kind then
      local n = tonumber(all[i + 1])
      list[#list + 1] = { s, n }
      sum = sum + n
    end
  end
  table.sort(list, function(x, y) return x[1] < y[1] end)
  return list, sum
end

-- How many ms until a sum is below a limit.
local function wait(list, sum, limit)
  for _, x in ipairs(list) do
    sum = sum - x[2]
    if sum < limit then
      return (x[1] + 61) * 1000 - now
    end
  end
  return 0
end

local out = {}
for _, a in ipairs(req.asks) do
  local open, spans = P .. 'open:' .. a.k, P .. 'minute:' .. a.k
  local limit, ms = 0, 0
  if a.r > 0 then
    local list, sum = minute(spans, 'r')
    if sum >= a.r then limit, ms = 2, wait(list, sum, a.r) end
  end
  if limit == 0 and a.t > 0 then
    local list, sum = minute(spans, 't')
    if sum >= a.t then limit, ms = 3, wait(list, sum, a.t) end
  end
  if limit == 0 and a.p > 0 then
    local sum = 0
    local all = redis.call('HGETALL', open)
    for i = 1, #all, 2 do
      if live(all[i]) then
        sum = sum + tonumber(all[i + 1])
      else
        redis.call('HDEL', open, all[i])
      end
    end
    if sum >= a.p then
      limit = 1
      redis.call('SET', P .. 'wanted:' .. a.k, '1', 'PX', 60000)
    end
  end
  if limit == 0 then
    redis.call('HINCRBY', open, me, 1)
    redis.call('EXPIRE', open, 60)
    if a.r > 0 then
      redis.call('HINCRBY', spans, 'r' .. string.format('%.0f', sec), 1)
      redis.call('EXPIRE', spans, 70)
    end
  end
  out[#out + 1] = limit
  out[#out + 1] = ms
end
return out
