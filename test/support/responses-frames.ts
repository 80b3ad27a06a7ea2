/** Frames of a responses stream as a vendor writes them. */

export function frame(type: string, sequence: number, fields: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, ...fields })}\n\n`
}

export const response = {
  id: "resp_1",
  object: "response",
  status: "in_progress",
  model: "up",
  output: [],
  usage: null,
}
export const usage = {
  input_tokens: 40,
  input_tokens_details: { cached_tokens: 30, cache_write_tokens: 2 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 49,
}
export const used = {
  input: 40,
  cachedInput: 30,
  cacheWrite: 2,
  audioInput: 0,
  output: 9,
  reasoning: 4,
  audioOutput: 0,
}
export const place = { item_id: "msg_1", output_index: 0, content_index: 0 }
export const preamble = [
  frame("response.created", 0, { response }),
  frame("response.in_progress", 1, { response }),
  frame("response.output_item.added", 2, { output_index: 0, item: { id: "msg_1", type: "message", content: [] } }),
  frame("response.content_part.added", 3, { ...place, part: { type: "output_text", text: "", annotations: [] } }),
]
export const delta = frame("response.output_text.delta", 4, { ...place, delta: "Grüße 👋" })
export const after = [
  frame("response.output_text.done", 5, { ...place, text: "Grüße 👋" }),
  frame("response.output_item.done", 6, { output_index: 0, item: { id: "msg_1", type: "message", content: [] } }),
]
export const completed = frame("response.completed", 7, { response: { ...response, status: "completed", usage } })
export const whole = [...preamble, delta, ...after, completed]
