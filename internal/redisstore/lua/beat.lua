-- Notes that an instance lives: returns whether it was known, and who lives.
-- KEYS: prefix. ARGV: instance, ms that an instance lives after its beat.
local P, me = KEYS[1], ARGV[1]
local t = redis.call('TIME')
local now = math.floor((t[1] * 1000000 + t[2]) / 1000)
local alive = P .. 'alive'
local known = redis.call('ZSCORE', alive, me)
redis.call('ZADD', alive, string.format('%.0f', now), me)
-- Longer than any limit looks back: who is not known has nothing left to count.
redis.call('ZREMRANGEBYSCORE', alive, '-inf', string.format('%.0f', now - 600000))
redis.call('PEXPIRE', alive, 600000)
local names = redis.call('ZRANGEBYSCORE', alive, string.format('%.0f', now - tonumber(ARGV[2])), '+inf')
table.insert(names, 1, known and '1' or '0')
return names
