import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { GatewayError } from "../core/errors.ts"
import { newId } from "../lib/ids.ts"
import { dollarsOf, nanosOf } from "../lib/money.ts"
import type { AccountWithBalance } from "../store/accounts.ts"
import { inTransaction } from "../store/db.ts"
import { StoreConflict, StoreMissing } from "../store/errors.ts"
import {
  balanceOf,
  largestAmount,
  listLedgerBefore,
  postAdjustment,
  postTopup,
  smallestAmount,
} from "../store/ledger.ts"
import type { LineKind, Reader } from "../store/schema.ts"
import { accountInPath, requireAccount } from "./accounts.ts"
import { bodyOf, jsonBody } from "./bodies.ts"
import { missing, shown } from "./errors.ts"
import { lineFields, lineView, type NamedLine } from "./ledger.ts"
import { plainText, queryOf } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { dollars } from "./quantities.ts"
import { answer, bodyRefusals, notFound, refusals } from "./responses.ts"

const longestNote = 500
const longestReference = 200

const noNumber = 'must be text such as "25.00", with at most nine decimals; a JSON number is not exact'

/** An amount in dollars; `fits` holds for its value in 1e-9 dollar, or else the amount `must` be different. */
function amountField(meaning: string, must: string, fits: (nanos: bigint) => boolean) {
  return z
    .string({ error: noNumber })
    .regex(/^-?\d{1,30}(\.\d{1,9})?$/, { error: noNumber, abort: true })
    .refine((text) => fits(nanosOf(text)), { error: must, abort: true })
    .refine((text) => nanosOf(text) <= largestAmount, `must be at most ${dollarsOf(largestAmount)}`)
    .refine((text) => nanosOf(text) >= smallestAmount, `must be at least ${dollarsOf(smallestAmount)}`)
    .describe(`${meaning} Dollars, as an exact decimal of at most nine decimals.`)
    .openapi({ example: "25.00" })
}

const bodyText = () => plainText({ error: "must be text" })

const note = bodyText().max(longestNote, `must have at most ${longestNote} characters`)

const reference = bodyText()
  .min(1, "must not be empty")
  .max(longestReference, `must have at most ${longestReference} characters`)
  .optional()
  .describe("However often it is sent, it is posted once. Made up where it is not given.")

const postedSchema = z.object({ ...lineFields, balance: dollars("What the account has now.") }).openapi("PostedLine")

const responses = {
  200: answer("The line, which was posted earlier under this reference.", postedSchema),
  201: answer("The line, which was posted now.", postedSchema),
  ...refusals,
  ...bodyRefusals,
  ...notFound,
}

const topupRoute = createRoute({
  method: "post",
  path: "/api/accounts/{a}/topups",
  operationId: "postTopup",
  summary: "Adds money to an account",
  tags: ["ledger"],
  middleware: jsonBody,
  request: {
    params: accountInPath,
    query: queryOf({}),
    body: bodyOf(
      {
        amount: amountField("What is added.", "must be above zero", (nanos) => nanos > 0n),
        note: note.optional().describe("For people."),
        reference,
      },
      "Topup",
    ),
  },
  responses,
})

const adjustmentRoute = createRoute({
  method: "post",
  path: "/api/accounts/{a}/adjustments",
  operationId: "postAdjustment",
  summary: "Puts an account's balance right, up or down",
  tags: ["ledger"],
  middleware: jsonBody,
  request: {
    params: accountInPath,
    query: queryOf({}),
    body: bodyOf(
      {
        amount: amountField("What is added; below zero, what is taken.", "must not be zero", (nanos) => nanos !== 0n),
        note: note
          .refine((text) => text.trim() !== "", "must say what the adjustment is for")
          .describe("What it is for."),
        reference,
      },
      "Adjustment",
    ),
  },
  responses,
})

export function postingRoutes(app: OpenAPIHono, parts: AdminParts): void {
  app.openapi(topupRoute, async (context) => {
    const { body, status } = await post(context.req.valid("param").a, "topup", context.req.valid("json"), parts)
    return context.json(body, status)
  })
  app.openapi(adjustmentRoute, async (context) => {
    const { body, status } = await post(context.req.valid("param").a, "adjustment", context.req.valid("json"), parts)
    return context.json(body, status)
  })
}

interface Asked {
  readonly amount: string
  readonly note?: string | undefined
  readonly reference?: string | undefined
}

interface Answered {
  readonly status: 200 | 201
  readonly body: z.infer<typeof postedSchema>
}

async function post(
  idOrName: string,
  kind: "topup" | "adjustment",
  asked: Asked,
  parts: AdminParts,
): Promise<Answered> {
  const account = await requireAccount(parts, idOrName)
  const wanted = {
    account: account.name,
    amount: nanosOf(asked.amount),
    reference: asked.reference ?? `${kind}_${newId()}`,
    note: asked.note ?? null,
  }
  const answered = await inTransaction(parts.store, async (trx) => {
    const { posted } = await (kind === "topup"
      ? postTopup(trx, wanted)
      : postAdjustment(trx, { ...wanted, note: wanted.note ?? "" }))
    const line = await lineOf(trx, wanted.reference)
    if (line === null) throw new Error(`the line ${wanted.reference} is not there after it was posted`)
    const balance = dollarsOf(await balanceOf(trx, account.id))
    return { status: posted ? 201 : 200, body: { ...lineView(line), balance } } as const
  }).catch(async (error: unknown) => {
    throw await explained(error, account, wanted, parts)
  })
  parts.balanceChanged(account.id)
  return answered
}

async function lineOf(db: Reader, wanted: string): Promise<NamedLine | null> {
  return (await listLedgerBefore(db, { before: null, limit: 1, reference: wanted }))[0] ?? null
}

const described: Readonly<Record<LineKind, string>> = {
  topup: "a top-up",
  charge: "a charge",
  adjustment: "an adjustment",
}

/** Says in dollars and names why the books did not take a line. */
async function explained(
  error: unknown,
  account: AccountWithBalance,
  wanted: { readonly amount: bigint; readonly reference: string },
  { store }: AdminParts,
): Promise<unknown> {
  if (error instanceof StoreMissing) return missing("account", account.name)
  if (!(error instanceof StoreConflict)) return error
  const line = await lineOf(store.db, wanted.reference)
  if (line !== null) {
    const use = `${described[line.kind]} of ${dollarsOf(line.amount)} dollars on account ${JSON.stringify(line.account)}`
    return refused(`reference ${JSON.stringify(shown(wanted.reference))} was already used for ${use}`)
  }
  const balance = account.balance + wanted.amount
  if (balance >= smallestAmount && balance <= largestAmount) return refused(error.message)
  return refused(
    `amount would take the balance to ${dollarsOf(balance)} dollars, beyond what can be kept ` +
      `(${dollarsOf(smallestAmount)} to ${dollarsOf(largestAmount)})`,
  )
}

function refused(message: string): GatewayError {
  return new GatewayError("invalid_parameter", message)
}
