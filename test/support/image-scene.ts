import { expect } from "bun:test"
import type { Behaviour, BehaviourOf } from "../../simulator/behaviour.ts"
import type { RecordedCall } from "../../simulator/calls.ts"
import type { Simulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import type { ConfigDocument, UpstreamConfig } from "../../src/config/document.ts"
import { type GatewayOptions, model, startGateway, type TestGateway, upstream } from "./gateway.ts"
import { type Answer, readAnswer } from "./scene.ts"

/** How each vendor whose images are jobs is asked here. */
export interface JobVendor {
  /** The upstream's own name of the model. */
  readonly model: string
  /** What comes after the vendor's name in its base URL. */
  readonly base: string
  readonly submitPath: string
  readonly auth: (secret: string) => readonly [name: string, value: string]
  readonly cancels: { readonly method: string; readonly path: RegExp } | null
}

const bearer = (secret: string) => ["authorization", `Bearer ${secret}`] as const

export const jobVendors = {
  dashscope: {
    model: "wan2.5-t2i-preview",
    base: "",
    submitPath: "/api/v1/services/aigc/text2image/image-synthesis",
    auth: bearer,
    cancels: { method: "POST", path: /\/api\/v1\/tasks\/[\w-]+\/cancel$/ },
  },
  bfl: {
    model: "flux-2-pro",
    base: "/v1",
    submitPath: "/v1/flux-2-pro",
    auth: (secret: string) => ["x-key", secret] as const,
    cancels: null,
  },
  replicate: {
    model: "black-forest-labs/flux-schnell",
    base: "/v1",
    submitPath: "/v1/models/black-forest-labs/flux-schnell/predictions",
    auth: bearer,
    cancels: { method: "POST", path: /\/v1\/predictions\/\w+\/cancel$/ },
  },
  fal: {
    model: "fal-ai/flux/dev",
    base: "",
    submitPath: "/fal-ai/flux/dev",
    auth: (secret: string) => ["authorization", `Key ${secret}`] as const,
    cancels: { method: "PUT", path: /\/fal-ai\/flux\/requests\/[\w-]+\/cancel$/ },
  },
} as const satisfies Record<string, JobVendor>

export type JobVendorName = keyof typeof jobVendors
export const jobVendorNames = Object.keys(jobVendors) as JobVendorName[]

/** Another vendor than the one named, whose images are jobs too. */
export function otherVendor(name: JobVendorName): JobVendorName {
  return jobVendorNames[(jobVendorNames.indexOf(name) + 1) % jobVendorNames.length]!
}

export interface ImageScene extends AsyncDisposable {
  readonly gateway: TestGateway
  vendor(name: string): SimulatedVendor
  /** Asks for images of a prompt and reads the answer to its end. */
  ask(more?: Readonly<Record<string, unknown>>, init?: RequestInit): Promise<Answer>
  post(more?: Readonly<Record<string, unknown>>, init?: RequestInit): Promise<Response>
  submits(name: JobVendorName): readonly RecordedCall[]
  polls(name: JobVendorName): readonly RecordedCall[]
  cancels(name: JobVendorName): readonly RecordedCall[]
}

export interface ImageSceneOptions extends ConfigDocument, GatewayOptions {
  /** Changes to every upstream. */
  readonly upstream?: Partial<UpstreamConfig>
  /** The upstream's name of the model at the first vendor. */
  readonly model?: string
}

/** A step of a job, the plainest where nothing is said: finished when it is first asked after. */
export function job(step: Omit<BehaviourOf<"image_job">, "kind"> = {}): Behaviour {
  return { kind: "image_job", waitPolls: 0, ...step }
}

/** A job that is not over when its submit is answered, also where the vendor would hold the answer back. */
export function slowJob(step: Omit<BehaviourOf<"image_job">, "kind"> = {}): Behaviour {
  return { kind: "image_job", waitPolls: 1, ...step }
}

export const prompt = "a fox in the snow"

let scenes = 0

/** The model "m" has a route to each of the named vendors in order; one that is not of the table is an "openai". */
export async function imageScene(
  simulator: Simulator,
  names: readonly string[],
  { upstream: changes = {}, model: firstModel, allowPrivateAddresses, ...document }: ImageSceneOptions = {},
): Promise<ImageScene> {
  const number = ++scenes
  const rowOf = (name: string): JobVendor | undefined => jobVendors[name as JobVendorName]
  const home = (name: string): string => `${name}-${number}`
  const vendor = (name: string): SimulatedVendor => simulator.vendor(home(name))
  const pathOf = (name: string, call: RecordedCall): string =>
    call.path.slice(home(name).length + 1).replace(/\?.*$/, "")
  const gateway = await startGateway(
    {
      upstreams: names.map((name) =>
        upstream(name, `${simulator.url}/${home(name)}${rowOf(name)?.base ?? "/v1"}`, {
          vendor: rowOf(name) === undefined ? "openai" : name,
          ...changes,
        }),
      ),
      models: [
        model(
          "m",
          names.map((name, position) => ({
            upstream: name,
            model: (position === 0 ? firstModel : undefined) ?? rowOf(name)?.model ?? "gpt-image-1",
          })),
        ),
      ],
      ...document,
    },
    undefined,
    allowPrivateAddresses === undefined ? {} : { allowPrivateAddresses },
  )
  const post: ImageScene["post"] = (more = {}, init = {}) =>
    fetch(`${gateway.url}/v1/images/generations`, {
      method: "POST",
      body: JSON.stringify({ model: "m", prompt, ...more }),
      ...init,
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json", ...init.headers },
    })
  const isSubmit = (call: RecordedCall): boolean => call.method === "POST" && !call.path.endsWith("/cancel")
  return {
    gateway,
    vendor,
    post,
    ask: async (more, init) => readAnswer(gateway, await post(more, init)),
    submits: (name) => vendor(name).calls.filter(isSubmit),
    polls: (name) => vendor(name).calls.filter((call) => call.method === "GET" && !call.path.includes("/files/")),
    cancels: (name) => {
      const { cancels } = jobVendors[name]
      return vendor(name).calls.filter(
        (call) => cancels !== null && call.method === cancels.method && cancels.path.test(pathOf(name, call)),
      )
    },
    [Symbol.asyncDispose]: () => gateway.stop(),
  }
}

/** The body of a request that a vendor received. */
export function bodyOf(call: RecordedCall): Record<string, unknown> {
  return JSON.parse(Buffer.from(call.body).toString()) as Record<string, unknown>
}

interface ImagesAnswer {
  readonly created: number
  readonly data: readonly { readonly url?: string; readonly b64_json?: string }[]
}

/** The pictures of an answer in the images shape, which has nothing else in it. */
export function picturesOf(answer: Answer): ImagesAnswer["data"] {
  expect({ status: answer.status, type: answer.headers.get("content-type") }).toEqual({
    status: 200,
    type: "application/json",
  })
  const body = JSON.parse(answer.text) as ImagesAnswer
  expect(Object.keys(body)).toEqual(["created", "data"])
  expect(Math.abs(body.created - Date.now() / 1000)).toBeLessThan(60)
  return body.data
}

/** A job that gave no image: our error, which tells the reason and asks not to be repeated. */
export function expectJobError(answer: Answer, reason: string): void {
  const id = answer.headers.get("x-request-id")
  expect({ status: answer.status, retry: answer.headers.get("x-should-retry"), body: JSON.parse(answer.text) }).toEqual(
    {
      status: 502,
      retry: "false",
      body: {
        error: {
          type: "api_error",
          code: "upstream_error",
          message: `the image could not be made: ${reason}`,
          request_id: id,
        },
        request_id: id,
      },
    },
  )
  expect({ ending: answer.story.ending, error: answer.story.error }).toEqual({
    ending: "failed",
    error: "upstream_error",
  })
  expect(answer.story.attempts).toHaveLength(1)
}
