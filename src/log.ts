import pino, { type Logger } from "pino"

export type Log = Logger
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent"

/** JSON lines on standard output; credentials are never passed to it, and these names are blanked should one slip in. */
export function openLog(level: LogLevel): Log {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: ["authorization", "apiKey", "api_key", "key", "password", "*.authorization", "*.apiKey", "*.password"],
      censor: "***",
    },
  })
}
