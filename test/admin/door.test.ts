import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { adminApi } from "../../src/admin/api.ts"
import { openStore } from "../../src/store/db.ts"
import { type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { launchPostgres } from "../support/postgres.ts"
import { rawExchange } from "../support/raw-http.ts"
import { adminToken, type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { exampleBodies, examples, recordSample, sampleHouse, secrets } from "./samples.ts"

let fresh: FreshStore
let office: BackOffice
let closedOffice: BackOffice
beforeAll(async () => {
  fresh = await freshStore("sqlite")
  office = await openBackOffice(fresh.store, sampleHouse)
  await recordSample(fresh.store)
  closedOffice = await openBackOffice(fresh.store, {}, { adminToken: null })
})
afterAll(async () => {
  await office.stop()
  await closedOffice.stop()
  await fresh.close()
})

/** Every path of the description as it stands there and with names that exist in place of its parameters. */
async function describedPaths(method: string): Promise<readonly (readonly [described: string, path: string])[]> {
  const { paths } = await office.read<{ paths: Record<string, object> }>("/api/openapi.json")
  return Object.entries(paths)
    .filter(([, methods]) => method in methods)
    .map(([path]) => {
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const example = examples[name]
        if (example === undefined) throw new Error(`give this test an example for {${name}} of ${path}`)
        return example
      })
      return [path, filled]
    })
}

/** What is described and some that is not. */
async function allPaths(): Promise<readonly string[]> {
  const described = [...(await describedPaths("get")), ...(await describedPaths("post"))].map(([, path]) => path)
  expect(described).toContain("/api/openapi.json")
  return [...described, "/api", "/api/", "/api/nothing", "/api/models/meta/llama%203/8b", "/api/accounts?limit=none"]
}

async function expectRefused(response: Response): Promise<void> {
  expect(response.status).toBe(401)
  expect(response.headers.get("www-authenticate")).toBe("Bearer")
  expect(response.headers.get("cache-control")).toBe("no-store")
  expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
  expect(await response.json()).toEqual({
    error: {
      message:
        "Missing or invalid admin token. Send it as 'Authorization: Bearer <token>'; API keys of accounts do not work here.",
      type: "invalid_request_error",
      param: null,
      code: "invalid_api_key",
    },
  })
}

describe("authentication", () => {
  const wrong: Readonly<Record<string, Record<string, string>>> = {
    "no header": {},
    "the key of an account": { authorization: `Bearer ${secrets.accountKey}` },
    "the key of an account as x-api-key": { "x-api-key": secrets.accountKey },
    "the token as x-api-key": { "x-api-key": adminToken },
    "the token in a cookie": { cookie: `token=${adminToken}` },
    "the bare token": { authorization: adminToken },
    "another scheme": { authorization: `Basic ${adminToken}` },
    "the scheme in lower case": { authorization: `bearer ${adminToken}` },
    "two spaces": { authorization: `Bearer  ${adminToken}` },
    "no token": { authorization: "Bearer" },
    "a beginning of the token": { authorization: `Bearer ${adminToken.slice(0, -1)}` },
    "more than the token": { authorization: `Bearer ${adminToken}x` },
    "the token in another case": { authorization: `Bearer ${adminToken.toUpperCase()}` },
    "the word null": { authorization: "Bearer null" },
  }

  test.each(Object.entries(wrong))("%s opens no path, in no method", async (_, headers) => {
    for (const path of await allPaths()) {
      for (const method of ["GET", "POST", "DELETE"]) await expectRefused(await office.ask(path, { method, headers }))
    }
  })

  test("where no token is configured nothing opens any path", async () => {
    for (const path of await allPaths()) {
      await expectRefused(await closedOffice.ask(path))
      for (const headers of Object.values(wrong)) await expectRefused(await closedOffice.ask(path, { headers }))
    }
  })

  test("the token opens every described path", async () => {
    for (const [, path] of await describedPaths("get")) {
      const response = await office.ask(path)
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get("content-type")).toStartWith("application/json")
      expect(response.headers.get("cache-control")).toBe("no-store")
      expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
      const head = await office.ask(path, { method: "HEAD" })
      expect([path, head.status, await head.text()]).toEqual([path, 200, ""])
    }
    for (const [described, path] of await describedPaths("post")) {
      const response = await office.send(path, exampleBodies[described]!)
      expect([path, response.status]).toEqual([path, 201])
      expect(response.headers.get("cache-control")).toBe("no-store")
    }
  })

  test("what is refused at the door changes nothing", async () => {
    const before = await office.read("/api/accounts/acme")
    for (const [described, path] of await describedPaths("post")) {
      await expectRefused(await office.send(path, exampleBodies[described]!, { authorization: "Bearer wrong" }))
    }
    expect(await office.read("/api/accounts/acme")).toEqual(before)
  })
})

describe("refusals", () => {
  const invalid: readonly (readonly [query: string, message: string])[] = [
    ["limit=0", "limit must be a whole number from 1 to 500"],
    ["limit=501", "limit must be a whole number from 1 to 500"],
    ["limit=", "limit must be a whole number from 1 to 500"],
    ["limit=-1", "limit must be a whole number from 1 to 500"],
    ["limit=1.5", "limit must be a whole number from 1 to 500"],
    ["limit=1e2", "limit must be a whole number from 1 to 500"],
    ["limit=%2010", "limit must be a whole number from 1 to 500"],
    ["limit=5&limit=6", "limit must be given once"],
    ["cursor=", "cursor must be the `next` of an earlier page of this list"],
    ["cursor=acme", "cursor must be the `next` of an earlier page of this list"],
    ["cursor=***", "cursor must be the `next` of an earlier page of this list"],
    ["limt=5", "limt is not a parameter of this address (did you mean limit?)"],
    ["x=1&y=2", "x is not a parameter of this address; y is not a parameter of this address"],
    ["__proto__=1", "__proto__ is not a parameter of this address"],
    ["limit=0&cursr=a", "cursr is not a parameter of this address (did you mean cursor?)"],
  ]

  test.each(["accounts", "upstreams", "models", "ledger", "requests", "usage"])(
    "a parameter of %s that cannot be used is 400 and named",
    async (list) => {
      for (const [query, message] of invalid) {
        const refusal = await refusalOf(await office.ask(`/api/${list}?${query}`))
        expect({ query, ...refusal, message: refusal.message.includes(message) }).toEqual({
          query,
          status: 400,
          code: "invalid_parameter",
          message: true,
        })
      }
    },
  )

  test("a cursor of one list does not fit another, nor does one with something added", async () => {
    const { next } = await office.read<{ next: string }>("/api/models?limit=1")
    for (const path of [
      `/api/upstreams?cursor=${next}`,
      `/api/models?cursor=${next}!`,
      `/api/models?cursor=${next}=`,
    ]) {
      expect(await refusalOf(await office.ask(path))).toMatchObject({ status: 400, code: "invalid_parameter" })
    }
  })

  test("a flag is true or false; single entries and the description take no parameters", async () => {
    expect(await refusalOf(await office.ask("/api/accounts?suspended=yes"))).toEqual({
      status: 400,
      code: "invalid_parameter",
      message: "suspended must be true or false",
    })
    for (const path of ["/api/accounts/acme", "/api/upstreams/claude", "/api/models/gpt-5", "/api/openapi.json"]) {
      expect((await refusalOf(await office.ask(`${path}?limit=5`))).message).toBe(
        "limit is not a parameter of this address",
      )
    }
  })

  test("a cursor of a list by numbers or times that was tampered with is refused", async () => {
    const forged: Readonly<Record<string, readonly string[]>> = {
      ledger: ["ledger:", "ledger:x", "ledger:-1", "ledger:9223372036854775808", "ledger:1 ", "requests:1"],
      requests: ["requests:1", "requests:x:req_1", "requests:1:", "requests:1:a\0", `requests:${"9".repeat(16)}:a`],
      usage: [
        "usage:hour::",
        "usage:hour::[]",
        'usage:hour::[0,1,0,"a\\u0000",null,null]',
        "usage:hour::[0,1,0.5,null,null,null]",
        "usage:day::[0,1,0,null,null,null]",
        "usage:hour:model:[0,1,0,null,null,null]",
      ],
    }
    for (const [list, places] of Object.entries(forged)) {
      for (const place of places) {
        const cursor = Buffer.from(place).toString("base64url")
        const refusal = await refusalOf(await office.ask(`/api/${list}?cursor=${cursor}`))
        expect([place, refusal.message]).toEqual([place, "cursor must be the `next` of an earlier page of this list"])
      }
    }
  })

  test("a path where nothing is, is 404", async () => {
    for (const path of ["/api", "/api/", "/api/nothing", "/api/accounts/", "/api/accounts/acme/x", "/api/models/"]) {
      const response = await office.ask(path)
      expect(response.headers.get("cache-control")).toBe("no-store")
      expect(await refusalOf(response)).toEqual({
        status: 404,
        code: "not_found",
        message: `there is nothing at ${path}`,
      })
    }
  })

  test("a wrong method is 405 and told the right ones", async () => {
    for (const path of ["/api/accounts", "/api/upstreams/claude", "/api/models/a/b", "/api/openapi.json"]) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const response = await office.ask(path, { method })
        expect(response.headers.get("allow")).toBe("GET, HEAD")
        expect(await refusalOf(response)).toEqual({
          status: 405,
          code: "method_not_allowed",
          message: `${path} takes GET, HEAD, not ${method}`,
        })
      }
    }
  })

  test("a path that is only posted to says so", async () => {
    for (const [, path] of await describedPaths("post")) {
      const response = await office.ask(path)
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"])
    }
  })

  test("a request without a host is served like any other", async () => {
    const head = `GET /api/accounts/acme?x:y=1 HTTP/1.0\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`
    const refused = await rawExchange(office.url, head)
    expect(refused.text).toContain("x:y is not a parameter of this address")
    const served = await rawExchange(office.url, head.replace("?x:y=1", ""))
    expect([served.status, JSON.parse(served.text).name]).toEqual([200, "acme"])
    const body = '{"amount":"0.25"}'
    const posted = await rawExchange(
      office.url,
      `POST /api/accounts/acme/topups HTTP/1.0\r\nAuthorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect([posted.status, JSON.parse(posted.text).amount]).toEqual([201, "0.25"])
  })

  test(
    "the database away is 503 until it is back; what needs no database is served meanwhile",
    async () => {
      const server = await launchPostgres()
      const store = await openStore({ kind: "postgres", url: await server.freshDatabase() })
      const remote = await openBackOffice(store, sampleHouse)
      try {
        await server.kill()
        const away = {
          status: 503,
          code: "backend_unavailable",
          message: "the gateway's database is not available; try again shortly",
        }
        for (const list of ["accounts", "accounts/acme", "ledger", "requests", "requests/r", "usage"]) {
          expect(await refusalOf(await remote.ask(`/api/${list}`))).toEqual(away)
        }
        expect(await refusalOf(await remote.send("/api/accounts/acme/topups", { amount: "1" }))).toEqual(away)
        expect((await remote.ask("/api/models")).status).toBe(200)
        await server.start()
        expect((await remote.ask("/api/accounts/acme")).status).toBe(200)
      } finally {
        await remote.stop()
        await store.close()
        await server.stop()
      }
    },
    slowStart,
  )

  test("a fault of the program is thrown, for the edge to report it", async () => {
    const fault = new Error("a fault")
    const api = adminApi({
      ...office.parts,
      snapshot() {
        throw fault
      },
    })
    const request = new Request("http://localhost/api/models", { headers: { authorization: `Bearer ${adminToken}` } })
    await expect(Promise.resolve(api(request, "req_1"))).rejects.toBe(fault)
  })
})
