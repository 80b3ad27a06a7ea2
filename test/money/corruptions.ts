import { usageCounters } from "../../src/store/schema.ts"

/** The id of the n-th request. */
export const id = (number: number) => `req_${String(number).padStart(32, "0")}`
/** Where the roll-ups have what was charged. */
export const hour = "hour 2026-09-21T14:00Z"
export const day = "day 2026-09-21"
export const place = 'model "gpt-5", upstream "openai-main"'

/** The id of the n-th video job. */
export const jobId = (number: number) => `019a0000-0000-7000-8000-${String(number).padStart(12, "0")}`
const filmPlace = 'model "kling-video", upstream "kling-main"'
const globexFilm = `account "globex", video job "${jobId(2)}"`
const globexFilmLine = `account "globex", line 3 ("video_${jobId(2)}")`
const withoutFilm = [hour, day].map(
  (time) => `account "globex", ${time}, ${filmPlace}: expected no roll-up, found one of requests 0, charge 0.5`,
)

export const globexOnly = "account_id = (select id from accounts where name = 'globex')"
const acmeLines = "account_id = (select id from accounts where name = 'acme')"
const usageColumns = ["account_id", "model", "upstream", ...usageCounters].join(", ")
const counted =
  "input_tokens 10, cached_input_tokens 2, output_tokens 5, reasoning_tokens 1, " +
  "duration_ms 1000, first_token_ms 120, first_tokens 1"
const uncounted = counted.replaceAll(/\d+(?=,|$)/g, "0")

/** What someone does to books like those of the reconcile tests, and every difference that this makes. */
interface Corruption {
  readonly name: string
  readonly by: readonly string[]
  readonly told: readonly string[]
}

export const corruptions: readonly Corruption[] = [
  {
    name: "a balance in the middle of an account",
    by: ["update ledger set balance_after = balance_after + 1 where id = 3"],
    told: [
      `account "acme", line 3 ("${id(1)}"): expected a balance of 9.99990625 after it, found 9.999906251`,
      `account "acme", line 4 ("${id(2)}"): expected a balance of 9.999812501 after it, found 9.9998125`,
    ],
  },
  {
    name: "the last balance of an account",
    by: ["update ledger set balance_after = 0 where id = 6"],
    told: [
      'account "acme", line 6 ("a-1"): expected a balance of 10.9998125 after it, found 0',
      'account "acme": expected a balance of 10.9998125, the sum of its lines, found 0',
    ],
  },
  {
    name: "an account that did not begin with nothing",
    by: [`update ledger set balance_after = balance_after + 1000000000 where ${globexOnly}`],
    told: [
      'account "globex", line 2 ("t-2"): expected a balance of 5 after it, found 6',
      'account "globex": expected a balance of 4.99990625, the sum of its lines, found 5.99990625',
    ],
  },
  {
    name: "a line that was taken away",
    by: ["delete from ledger where id = 1"],
    told: [
      `account "acme", line 3 ("${id(1)}"): expected a balance of -0.00009375 after it, found 9.99990625`,
      'account "acme": expected a balance of 0.9998125, the sum of its lines, found 10.9998125',
    ],
  },
  {
    name: "a top-up that takes",
    by: [
      "update ledger set amount = -amount where id = 1",
      `update ledger set balance_after = balance_after - 20000000000 where ${acmeLines}`,
    ],
    told: ['account "acme", line 1 ("t-1"): expected a top-up above 0, found -10'],
  },
  {
    name: "a charge that gives",
    by: [
      "update ledger set amount = -amount where id = 5",
      "update ledger set balance_after = 5000093750 where id = 5",
    ],
    told: [
      `account "globex", line 5 ("${id(3)}"): expected a charge below 0, found 0.00009375`,
      `account "globex", line 5 ("${id(3)}"): expected -0.00009375 by its own quantities and prices, found 0.00009375`,
      `account "globex", request "${id(3)}": expected one ledger line of -0.00009375 on account "globex", found line 5 of 0.00009375 on account "globex"`,
      `account "globex", ${hour}, ${place}: expected charge -0.00009375, found charge 0.00009375`,
      `account "globex", ${day}, ${place}: expected charge -0.00009375, found charge 0.00009375`,
    ],
  },
  {
    name: "an adjustment of nothing",
    by: ["update ledger set amount = 0, balance_after = balance_after - amount where id = 6"],
    told: ['account "acme", line 6 ("a-1"): expected an adjustment other than 0, found 0'],
  },
  {
    name: "a line without a reference",
    by: ["update ledger set reference = '' where id = 6"],
    told: ['account "acme", line 6 (""): expected a reference, found none'],
  },
  {
    name: "another multiplier than was charged by",
    by: [`update ledger set price = replace(price, '"1.5"', '"2"') where id = 5`],
    told: [
      `account "globex", line 5 ("${id(3)}"): expected -0.000125 by its own quantities and prices, found -0.00009375`,
    ],
  },
  {
    name: "another quantity than was charged for",
    by: [`update ledger set measured = replace(measured, '"output_tokens":5', '"output_tokens":6') where id = 5`],
    told: [
      `account "globex", line 5 ("${id(3)}"): expected -0.00010875 by its own quantities and prices, found -0.00009375`,
    ],
  },
  {
    name: "a charge without a price",
    by: ["update ledger set price = null where id = 5"],
    told: [`account "globex", line 5 ("${id(3)}"): expected the quantities and prices that it was made by, found none`],
  },
  {
    name: "a quantity that is none",
    by: [`update ledger set measured = replace(measured, '"output_tokens":5', '"output_tokens":"5"') where id = 5`],
    told: [
      `account "globex", line 5 ("${id(3)}"): expected the quantities and prices that it was made by, found some that cannot be read ("5" is no quantity)`,
      `account "globex", ${hour}, ${place}: expected charge 0, found charge 0.00009375`,
      `account "globex", ${day}, ${place}: expected charge 0, found charge 0.00009375`,
    ],
  },
  {
    name: "a charged request without its line",
    by: ["delete from ledger where id = 5"],
    told: [
      `account "globex", request "${id(3)}": expected one ledger line of -0.00009375 on account "globex", found none`,
      `account "globex", ${hour}, ${place}: expected charge 0, found charge 0.00009375`,
      `account "globex", ${day}, ${place}: expected charge 0, found charge 0.00009375`,
    ],
  },
  {
    name: "a request charged another amount than its line",
    by: [`update requests set charge = charge + 1 where id = '${id(3)}'`],
    told: [
      `account "globex", request "${id(3)}": expected one ledger line of -0.000093751 on account "globex", found line 5 of -0.00009375 on account "globex"`,
    ],
  },
  {
    name: "a request that is not charged but has a line",
    by: [`update requests set charge = 0 where id = '${id(3)}'`],
    told: [
      `account "globex", request "${id(3)}": expected no ledger line, because it is not charged, found line 5 of -0.00009375 on account "globex"`,
    ],
  },
  {
    name: "a request that gives",
    by: [`update requests set charge = -1 where id = '${id(4)}'`],
    told: [`account "acme", request "${id(4)}": expected a charge not below 0, found -0.000000001`],
  },
  {
    name: "a charge without its request",
    by: [`delete from requests where id = '${id(3)}'`],
    told: [
      `account "globex", line 5 ("${id(3)}"): expected its request, found none`,
      `account "globex", ${hour}, ${place}: expected requests 0, ${uncounted}, found requests 1, ${counted}`,
      `account "globex", ${day}, ${place}: expected requests 0, ${uncounted}, found requests 1, ${counted}`,
    ],
  },
  {
    name: "an hour that counted a request too many",
    by: [`update usage_hours set requests = requests + 1 where ${globexOnly}`],
    told: [`account "globex", ${hour}, ${place}: expected requests 1, found requests 2`],
  },
  {
    name: "a day that took in too much",
    by: [`update usage_days set charge = charge + 1, images = 7 where ${globexOnly}`],
    told: [
      `account "globex", ${day}, ${place}: expected images 0, charge 0.00009375, found images 7, charge 0.000093751`,
    ],
  },
  {
    name: "an hour that is missing",
    by: [`delete from usage_hours where ${globexOnly}`],
    told: [`account "globex", ${hour}, ${place}: expected a roll-up of requests 1, charge 0.00009375, found none`],
  },
  {
    name: "an hour without cause",
    by: [
      `insert into usage_hours (hour, ${usageColumns}) select hour + 1, ${usageColumns} from usage_hours where ${globexOnly}`,
    ],
    told: [
      `account "globex", hour 2026-09-21T15:00Z, ${place}: expected no roll-up, found one of requests 1, charge 0.00009375`,
    ],
  },
]

/** The same for the books of the video jobs. */
export const jobCorruptions: readonly Corruption[] = [
  {
    name: "a charged job without its line",
    by: ["delete from ledger where id = 3"],
    told: [`${globexFilm}: expected one ledger line of -0.5 on account "globex", found none`, ...withoutFilm],
  },
  {
    name: "a charged job whose line is no charge",
    by: ["update ledger set kind = 'adjustment' where id = 3"],
    told: [`${globexFilm}: expected one ledger line of -0.5 on account "globex", found none`, ...withoutFilm],
  },
  {
    name: "a job charged another amount than its line",
    by: [`update jobs set charge = charge + 1 where id = '${jobId(2)}'`],
    told: [
      `${globexFilm}: expected one ledger line of -0.500000001 on account "globex", found line 3 of -0.5 on account "globex"`,
    ],
  },
  {
    name: "a job on another account than its line",
    by: [`update jobs set account_id = (select id from accounts where name = 'acme') where id = '${jobId(2)}'`],
    told: [
      `account "acme", video job "${jobId(2)}": expected one ledger line of -0.5 on account "acme", found line 3 of -0.5 on account "globex"`,
    ],
  },
  {
    name: "a completed job that is not charged but has a line",
    by: [`update jobs set charge = 0 where id = '${jobId(2)}'`],
    told: [
      `${globexFilm}: expected no ledger line, because it is not charged, found line 3 of -0.5 on account "globex"`,
    ],
  },
  ...["failed", "submitting", "queued", "in_progress"].map((state) => ({
    name: `a job that is ${state} but has a line`,
    by: [`update jobs set charge = 0, state = '${state}' where id = '${jobId(2)}'`],
    told: [`${globexFilmLine}: expected its completed video job, found one that is ${state}`],
  })),
  {
    name: "a charge without its job",
    by: [`delete from jobs where id = '${jobId(2)}'`],
    told: [`${globexFilmLine}: expected its completed video job, found none`],
  },
  {
    name: "a job made completed and charged without a line",
    by: [`update jobs set charge = 7, state = 'completed' where id = '${jobId(5)}'`],
    told: [
      `account "acme", video job "${jobId(5)}": expected one ledger line of -0.000000007 on account "acme", found none`,
    ],
  },
  {
    name: "a failed job that says it was charged",
    by: [`update jobs set charge = 7 where id = '${jobId(4)}'`],
    told: [`account "acme", video job "${jobId(4)}": expected no charge, because it is failed, found 0.000000007`],
  },
  {
    name: "a top-up that has the reference of an open job's charge",
    by: [`update ledger set reference = 'video_${jobId(5)}' where id = 1`],
    told: [`account "acme", line 1 ("video_${jobId(5)}"): expected its completed video job, found one that is queued`],
  },
]
