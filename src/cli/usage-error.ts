/** What was asked cannot be done as it was asked: one clear message, exit code 2, nothing changed. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = "UsageError"
  }
}
