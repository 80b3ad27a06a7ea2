import type { CircuitState } from "../core/events.ts"
import { Circuit } from "./circuit.ts"

/** The circuits of all upstreams by id; they outlive catalog changes, because an edit does not heal a vendor. */
export interface Health {
  circuit(upstreamId: string): Circuit
}

export function upstreamHealth(now: () => number, onChange: (upstreamId: string, state: CircuitState) => void): Health {
  const circuits = new Map<string, Circuit>()
  return {
    circuit(upstreamId) {
      let circuit = circuits.get(upstreamId)
      if (circuit === undefined) {
        circuit = new Circuit(now, (state) => onChange(upstreamId, state))
        circuits.set(upstreamId, circuit)
      }
      return circuit
    },
  }
}
