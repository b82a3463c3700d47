/**
 * BullMQ keeps the jobs and their times. What it cannot say – whether a logout is held, pending or parked, and how old
 * the oldest is – is kept beside it, in three sorted sets of job ids: `held` and `pending` by when the session ended,
 * `parked` by when that was. An id is in one of them at most, and leaving one is what decides between two callers.
 *
 * When a process dies between a script and the step of BullMQ that belongs to it, the job is delivered when its lease
 * is over: once too often at worst. `held`, `pending` and `parked` are always the first keys.
 */
const SETS = String.raw`
local held, pending, parked = KEYS[1], KEYS[2], KEYS[3]
`;
const NOW = String.raw`
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
`;

/**
 * `…sets, user, job, adding | id, endedAt`. Before the job is added: whoever adds it again must not hold what was
 * released. `adding` tells the others that the job is about to come; `user` outlives what a crash leaves in it.
 */
export const HOLD = String.raw`${SETS}
local user, job, adding = KEYS[4], KEYS[5], KEYS[6]
local id, endedAt = unpack(ARGV)
if redis.call('EXISTS', job) == 1 then return 0 end
redis.call('SET', adding, '1', 'PX', 60000)
redis.call('ZADD', held, endedAt, id)
redis.call('SADD', user, id)
redis.call('PEXPIRE', user, 90 * 24 * 60 * 60 * 1000)
return 1
`;

/** `…sets | id` */
export const RELEASE = String.raw`${SETS}
local id = ARGV[1]
local endedAt = redis.call('ZSCORE', held, id)
if not endedAt then return 0 end
redis.call('ZREM', held, id)
redis.call('ZADD', pending, endedAt, id)
return 1
`;

/** `…sets, job | id, endedAt`. It is pending now, whatever it was: claimed, or replayed here or in a dashboard of BullMQ. */
export const PEND = String.raw`${SETS}
local job = KEYS[4]
local id, endedAt = unpack(ARGV)
if redis.call('EXISTS', job) == 0 then return 0 end
redis.call('ZREM', held, id)
redis.call('ZREM', parked, id)
redis.call('ZADD', pending, endedAt, id)
return 1
`;

/** `…sets, delayed, wait, active | id`. BullMQ lets only an active job fail. */
export const PARK = String.raw`${SETS}${NOW}
local delayed, wait, active = KEYS[4], KEYS[5], KEYS[6]
local id = ARGV[1]
if redis.call('ZREM', pending, id) == 0 then return 0 end
redis.call('ZADD', parked, nowUs, id)
if redis.call('ZREM', delayed, id) == 1 or redis.call('LREM', wait, 1, id) == 1 then
  redis.call('LPUSH', active, id)
end
return 1
`;

/** `…sets, user, finished | id, from, record, finishedAt, keepMs`: `from` is one of the sets, or empty for any. */
export const END = String.raw`${SETS}
local user, finished = KEYS[4], KEYS[5]
local id, from, record, finishedAt, keepMs = unpack(ARGV)
local was = 0
for name, set in pairs({ held = held, pending = pending, parked = parked }) do
  if from == '' or from == name then was = was + redis.call('ZREM', set, id) end
end
if was == 0 then return 0 end
redis.call('SREM', user, id)
if record ~= '' and tonumber(keepMs) > 0 then
  redis.call('ZREMRANGEBYSCORE', finished, '-inf', finishedAt - keepMs)
  redis.call('ZADD', finished, finishedAt, record)
  redis.call('PEXPIRE', finished, keepMs)
end
return 1
`;

/** `…sets, delayed | ids…` → the set that each is in, and its score in `delayed`; empty when there is none. */
export const STATES = String.raw`${SETS}
local delayed = KEYS[4]
local states = {}
for _, id in ipairs(ARGV) do
  local state = redis.call('ZSCORE', held, id) and 'held' or redis.call('ZSCORE', pending, id) and 'pending'
    or redis.call('ZSCORE', parked, id) and 'parked' or ''
  table.insert(states, { state, redis.call('ZSCORE', delayed, id) or '' })
end
return states
`;

/**
 * `…sets, delayed, wait, meta, pause | the beginning of job keys, tick, the beginning of `adding` keys` → the three counts, the oldest pending one's
 * `endedAt`, how many are waiting, the first score in `delayed`, and for how long nothing is given out.
 * Forgets on the way what has lost its job, to an operator's hand perhaps; a hold may be about to get it.
 */
export const GLANCE = String.raw`${SETS}
local delayed, wait, meta, pause = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local jobs, tick, adding = unpack(ARGV)
for _, set in ipairs({ held, pending, parked }) do
  for _, id in ipairs(redis.call('ZRANGE', set, 0, 19)) do
    local isComing = set == held and redis.call('EXISTS', adding .. id) == 1
    if not isComing and redis.call('EXISTS', jobs .. id) == 0 then redis.call('ZREM', set, id) end
  end
end
local pausedMs = redis.call('PTTL', pause)
-- A dashboard may have paused the queue until somebody lets it go on.
if redis.call('HEXISTS', meta, 'paused') == 1 then pausedMs = math.max(pausedMs, tick) end
return {
  redis.call('ZCARD', held), redis.call('ZCARD', pending), redis.call('ZCARD', parked),
  redis.call('ZRANGE', pending, 0, 0, 'WITHSCORES')[2] or '',
  redis.call('LLEN', wait), redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or '',
  math.max(0, pausedMs),
}
`;

/** `pause | ms` */
export const PAUSE = String.raw`
local pause, ms = KEYS[1], tonumber(ARGV[1])
if redis.call('PTTL', pause) < ms then redis.call('SET', pause, '1', 'PX', ms) end
`;

/** `admitted | requests, perMs, a unique word` → how many milliseconds to wait; a log of every admission is exact. */
export const ADMIT = String.raw`${NOW}
local admitted = KEYS[1]
local requests, perMs = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', admitted, '-inf', string.format('(%.0f', nowUs - perMs * 1000))
local excess = redis.call('ZCARD', admitted) - requests
if excess < 0 then
  redis.call('ZADD', admitted, nowUs, ARGV[3])
  redis.call('PEXPIRE', admitted, perMs)
  return 0
end
local leaving = redis.call('ZRANGE', admitted, excess, excess, 'WITHSCORES')[2]
return math.max(1, math.ceil((leaving + perMs * 1000 - nowUs) / 1000))
`;
