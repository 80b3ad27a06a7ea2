/** The vocabularies that tokens can be counted with. */
export const tokenizers = ["o200k_base", "cl100k_base"] as const
export type Tokenizer = (typeof tokenizers)[number]

export const usualTokenizer: Tokenizer = "o200k_base"
