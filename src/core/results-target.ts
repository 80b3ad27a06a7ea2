/** Where copies of finished videos are kept, because vendors delete theirs within hours. */
export type ResultsTarget = { readonly kind: "folder"; readonly path: string } | BucketTarget

/** A bucket of Amazon S3, or of a service that speaks its protocol. */
export interface BucketTarget {
  readonly kind: "bucket"
  readonly bucket: string
  /** Before each name in the bucket; empty, or ends with a slash. */
  readonly prefix: string
  readonly endpoint: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Goes with keys that were lent for a time. */
  readonly sessionToken: string | null
}
