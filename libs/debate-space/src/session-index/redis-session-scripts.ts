/**
 * Three keys hold the sessions of an application:
 * - `sessions`, a hash: hash → uidHash, endsAt, expiresAt, sealed
 * - `due`, a sorted set: hash by when it runs out, or the claim of what has run out does
 * - `users`, a sorted set in the order of its bytes: a user's sessions lie side by side, the last to run out last
 *
 * They know the same sessions, so that they become empty, and vanish, together. A key for each user would be a key that
 * a call cannot declare, as a cluster demands: whose the session was before is known inside the script only.
 */
const SHARED = String.raw`
local sessions, due, users = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function place(uidHash, endsAt, hash)
  return uidHash .. '\0' .. string.format('%016.0f', endsAt) .. hash
end

local function read(hash)
  local known = redis.call('HGET', sessions, hash)
  if known then return cmsgpack.unpack(known) end
end

local function forget(hash)
  local uidHash, endsAt = read(hash)
  if uidHash then redis.call('ZREM', users, place(uidHash, endsAt, hash)) end
  redis.call('HDEL', sessions, hash)
  redis.call('ZREM', due, hash)
end
`;

/** Each call adds one session at most and forgets some that nobody claimed: they cannot pile up. */
export const PUT = String.raw`${SHARED}
local hash, uidHash, leftMs, expiresAt, sealed, keepMs, when = unpack(ARGV)
if when == 'if there' and read(hash) ~= uidHash then return end
forget(hash)
for _, old in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now - keepMs, 'LIMIT', 0, 10)) do forget(old) end

local endsAt = math.floor(math.max(0, now + leftMs))
redis.call('HSET', sessions, hash, cmsgpack.pack(uidHash, endsAt, expiresAt, sealed))
redis.call('ZADD', due, endsAt, hash)
redis.call('ZADD', users, 0, place(uidHash, endsAt, hash))

local ttl = math.max(0, endsAt - now) + keepMs
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
end
`;

/**
 * A client that lost its connection sends again what was not answered; ioredis does so by default. Asked again by the
 * same call the answer is the same, or nobody would report the end.
 */
export const REMOVE = String.raw`${SHARED}
local hash, uidHash, call, rememberMs = unpack(ARGV)
local remover = KEYS[4]
local removed = redis.call('GET', remover) == call
if not removed and read(hash) == uidHash then
  forget(hash)
  redis.call('SET', remover, call, 'PX', rememberMs)
  removed = true
end
local first, last = '[' .. place(uidHash, now + 1, ''), '(' .. uidHash .. '\1'
return { removed and 1 or 0, #redis.call('ZRANGEBYLEX', users, first, last, 'LIMIT', 0, 1) }
`;

export const CLAIM = String.raw`${SHARED}
local limit, leaseMs = unpack(ARGV)
local claimed = {}
for _, hash in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, limit)) do
  local uidHash, _, expiresAt, sealed = read(hash)
  if uidHash then
    redis.call('ZADD', due, now + leaseMs, hash)
    table.insert(claimed, { hash, uidHash, expiresAt, sealed })
  else
    forget(hash) -- Redis was short of memory and evicted a key
  end
end
return claimed
`;
