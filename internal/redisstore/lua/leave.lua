-- Notes that an instance ends, and tells the others.
-- KEYS: prefix. ARGV: instance.
redis.call('ZREM', KEYS[1] .. 'alive', ARGV[1])
redis.call('PUBLISH', KEYS[1] .. 'news', cjson.encode({ n = 'gone', from = ARGV[1] }))
return 1
