import { z } from "zod"
import { endpoints } from "../core/endpoints.ts"
import { type PriceUnit, priceUnits } from "../core/price.ts"
import { mostTokens } from "../core/token-count.ts"
import { tokenizers } from "../core/tokenizer.ts"
import type { VendorSetting } from "../core/vendor.ts"
import { vendorNames, vendors } from "../vendors/presets.ts"
import * as fields from "./fields.ts"

/*
 * The shape of the config FILE, as written. It stays free of transforms so that the published JSON Schema says all of it;
 * rules between fields are in rules.ts, defaults are filled in by normalise.ts.
 */

const fromEnvironment = `best as \${NAME} from the environment.`

export const mostPriority = 1000
export const mostWeight = 1_000_000
export const mostConcurrency = 1_000_000

/** Checks that JSON Schema must not repeat: in an editor the value may still be a `${NAME}`. */
function text(meaning: string, problem: (value: string) => string | null, message = "must be text") {
  return z
    .string({ error: message })
    .superRefine((value, context) => {
      const found = problem(value)
      if (found !== null) context.addIssue({ code: "custom", message: found })
    })
    .describe(meaning)
}

function whole(meaning: string, least: number, most: number, advice = "") {
  const error = `must be a whole number from ${least} to ${most}${advice}`
  return z.int({ error }).min(least, { error }).max(most, { error }).describe(meaning)
}

function list<Item extends z.ZodType>(item: Item, meaning: string) {
  return z.array(item, { error: "must be a list" }).describe(meaning)
}

function map<Shape extends z.ZodRawShape>(shape: Shape, meaning: string) {
  return z.strictObject(shape, { error: "must be a map" }).describe(meaning)
}

const name = (of: string) => text(`Name of the ${of}, unique in this file and in the database.`, fields.nameProblem)
const duration = (meaning: string) => text(meaning, fields.durationProblem, fields.durationMessage)
const amount = (meaning: string) =>
  z.union([z.number(), z.string()], { error: "must be a decimal number such as 1.25" }).describe(meaning)

const timeoutFields = {
  non_stream: duration("A non-streaming request in all. Default 120s.").optional(),
  first_token: duration("From asking an upstream to its first token. Default 60s.").optional(),
  silence: duration("Between two signs of progress in a stream. Default 120s.").optional(),
  total: duration("A streaming request in all. Default 30m.").optional(),
}

function settingField({ type, meaning, choices }: VendorSetting) {
  if (choices !== undefined)
    return z
      .enum(choices, { error: `must be one of ${choices.join(", ")}` })
      .describe(meaning)
      .optional()
  return type === "boolean"
    ? z.boolean({ error: "must be true or false" }).describe(meaning).optional()
    : text(meaning, fields.nameProblem).optional()
}

/** Every setting of any vendor, with the vendors that have it. */
const settings = new Map<string, { readonly setting: VendorSetting; readonly owners: string[] }>()
for (const vendor of vendors) {
  for (const [key, setting] of Object.entries(vendor.settings ?? {})) {
    const known = settings.get(key)
    if (known === undefined) settings.set(key, { setting, owners: [vendor.name] })
    else known.owners.push(vendor.name)
  }
}

/** Flat beside the common fields; typed `object` because the fixed fields alone are what code may rely on. */
const settingFields: object = Object.fromEntries(
  [...settings].map(([key, { setting, owners }]) => {
    const whose = owners.length === 1 ? `vendor ${owners[0]}` : `vendors ${owners.join(", ")}`
    return [key, settingField({ ...setting, meaning: `Only for ${whose}. ${setting.meaning}` })]
  }),
)

const upstream = map(
  {
    name: name("upstream"),
    vendor: z
      .enum(vendorNames, { error: "must be a known vendor" })
      .describe("The kind of upstream: protocol, paths and authentication."),
    base_url: text("Where its paths begin; the vendor's own address if left out.", fields.baseUrlProblem).optional(),
    api_key: text(`The credential, ${fromEnvironment}`, fields.credentialProblem).optional(),
    api_keys: list(
      text("One credential.", fields.credentialProblem),
      "Several credentials, used in turn; instead of api_key.",
    ).optional(),
    headers: z
      .record(z.string(), text("Header value.", fields.headerValueProblem), {
        error: "must be a map of header names to text",
      })
      .describe("Extra headers on every call to this upstream.")
      .optional(),
    timeouts: map(timeoutFields, "Time-outs of this upstream where they differ from the general ones.").optional(),
    concurrency: whole(
      "Requests in flight at once to this upstream; 0, the default, is unlimited.",
      0,
      mostConcurrency,
    ).optional(),
    ...settingFields,
  },
  "One connection to a vendor.",
)

const unitPrice = (meaning: string) => amount(`Dollars per ${meaning}.`).optional()

const priceFields = {
  input: unitPrice("million input tokens"),
  cached_input: unitPrice("million input tokens read from the vendor's cache"),
  cache_write: unitPrice("million input tokens written to the vendor's cache"),
  audio_input: unitPrice("million input tokens of audio"),
  output: unitPrice("million output tokens"),
  audio_output: unitPrice("million output tokens of audio"),
  image: unitPrice("output image"),
  second: unitPrice("second of video or audio"),
  character: unitPrice("input character"),
  request: unitPrice("call, or per search unit of a rerank vendor that counts them"),
} satisfies Record<PriceUnit, z.ZodType>

const tier = map(
  {
    above_input: whole("Fits answers to more input tokens than this.", 1, mostTokens).optional(),
    size: text("Fits pictures of this size, such as 1024x1536.", fields.nameProblem).optional(),
    quality: text("Fits pictures of this quality, such as high.", fields.nameProblem).optional(),
    ...priceFields,
  },
  "Other prices where every condition given is met; units that it does not name keep their price.",
)

const price = z
  .union(
    [
      z.literal("free"),
      map(
        {
          ...priceFields,
          tiers: list(tier, "Other prices for some answers; of those that fit, later ones win.").optional(),
        },
        "Dollars by unit; at least one.",
      ),
    ],
    { error: `must be "free" or a map of prices by unit (${priceUnits.join(", ")})` },
  )
  .describe("What the model costs, by unit, or `free`.")

const route = map(
  {
    upstream: text("Name of the upstream.", fields.nameProblem),
    model: text("The upstream's own name for the model; the same name if left out.", fields.nameProblem).optional(),
    priority: whole("Lower is asked first. Default 1.", 0, mostPriority).optional(),
    weight: whole(
      "Share inside one priority. Default 100.",
      1,
      mostWeight,
      " (remove the route to stop using it)",
    ).optional(),
  },
  "One way to serve the model.",
)

const model = map(
  {
    name: name("model, as clients write it"),
    price,
    tokenizer: z
      .enum(tokenizers, { error: "must be a known tokenizer" })
      .describe("What tokens are counted with where an upstream does not say how many. Default o200k_base.")
      .optional(),
    endpoints: list(
      z.enum(endpoints, { error: "must be a known endpoint" }),
      "Limits the model to these endpoints; every endpoint that its routes have if left out.",
    ).optional(),
    routes: list(route, "The upstreams that serve the model."),
  },
  "A model that clients can ask for.",
)

const plan = map(
  {
    name: name("plan"),
    concurrency: whole(
      "Requests in flight at once per account; 0, the default, is unlimited.",
      0,
      mostConcurrency,
    ).optional(),
    models: list(
      text("Model name or pattern with *.", fields.nameProblem),
      'Models that accounts may use. Default ["*"].',
    ).optional(),
    price_multiplier: amount("Factor on every price. Default 1.").optional(),
  },
  "Named defaults for accounts.",
)

const account = map(
  {
    name: name("account"),
    plan: text("Name of the plan.", fields.nameProblem).optional(),
    concurrency: whole(
      "Requests in flight at once, instead of the plan's; 0 is unlimited.",
      0,
      mostConcurrency,
    ).optional(),
    balance: amount("Dollars, posted once as an opening top-up when the account is new.").optional(),
    keys: list(
      map(
        {
          name: text("Name of the key, unique in the account.", fields.nameProblem),
          key: text(
            `The key itself, at least ${fields.shortestAccountKey} characters, ${fromEnvironment}`,
            fields.accountKeyProblem,
          ),
        },
        "One API key.",
      ),
      "API keys of the account.",
    ).optional(),
  },
  "A billing owner.",
)

const person = map(
  {
    email: text("E-mail address to sign in with.", fields.emailProblem),
    password: text(`Password, ${fromEnvironment}`, fields.passwordProblem),
    role: z
      .enum(["admin", "member"], { error: "must be a known role" })
      .describe("What the person may do in the console."),
    account: text("Name of the account that the person belongs to.", fields.nameProblem).optional(),
  },
  "Someone who signs in to the console.",
)

export const fileSchema = map(
  {
    upstreams: list(upstream, "Connections to vendors.").optional(),
    models: list(model, "Models that clients can ask for.").optional(),
    plans: list(plan, "Named defaults for accounts.").optional(),
    accounts: list(account, "Billing owners and their API keys.").optional(),
    people: list(person, "Who may sign in to the console.").optional(),
    timeouts: map(
      {
        ...timeoutFields,
        drain: duration("How long a draining instance waits for requests in flight. Default 120s.").optional(),
      },
      "Time-outs of every upstream that sets none of its own.",
    ).optional(),
    cors: map(
      {
        origins: list(
          text("An origin such as https://app.example.com, or * for any.", fields.originProblem),
          "Origins whose pages may call.",
        ),
      },
      "Lets web pages call the API from the browser; off without it.",
    ).optional(),
    allow_private_addresses: z
      .boolean({ error: "must be true or false" })
      .describe("Lets the gateway fetch from private and loopback addresses; meant for development.")
      .optional(),
    retention: map(
      {
        requests: text(
          "How long requests are kept, such as 90d, the default; at least 1h, or the word forever.",
          fields.retentionProblem,
          fields.retentionMessage,
        ),
      },
      "How long things are kept. The ledger is kept for good.",
    ).optional(),
  },
  "Tollgate configuration.",
)

export type ConfigFile = z.infer<typeof fileSchema>

/** The published JSON Schema of the file, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  return { ...z.toJSONSchema(fileSchema), title: "Tollgate configuration" }
}
