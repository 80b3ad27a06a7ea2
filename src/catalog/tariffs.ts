import type { Model, Plan, Snapshot } from "../core/catalog.ts"
import type { Tariff } from "../core/price.ts"

const bySnapshot = new WeakMap<Snapshot, WeakMap<Model, WeakMap<Plan, Tariff>>>()

/** What a request that is admitted now is charged by. The same tariff each time within a snapshot, so that its prices are read once. */
export function tariffFor(snapshot: Snapshot, model: Model, plan: Plan): Tariff {
  const byModel = remembered(bySnapshot, snapshot, () => new WeakMap<Model, WeakMap<Plan, Tariff>>())
  const byPlan = remembered(byModel, model, () => new WeakMap<Plan, Tariff>())
  return remembered(byPlan, plan, () => ({
    price: model.price,
    multiplier: plan.priceMultiplier,
    version: snapshot.version,
  }))
}

function remembered<Key extends WeakKey, Value>(known: WeakMap<Key, Value>, key: Key, make: () => Value): Value {
  const found = known.get(key)
  if (found !== undefined) return found
  const made = make()
  known.set(key, made)
  return made
}
