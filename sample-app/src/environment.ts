import * as v from 'valibot';

const text = v.pipe(v.string(), v.nonEmpty());
const port = v.pipe(v.string(), v.digits(), v.transform(Number), v.maxValue(65_535));

/** The variables that `.env.example` explains. @nestjs/config checks them at the start and names the wrong one. */
export const ENVIRONMENT = v.object({
  DEBATE_SPACE_API_KEY: text,
  DEBATE_SPACE_SECRET_KEY: text,
  DEBATE_SPACE_APPLICATION_NAME: text,
  SESSION_SECRET: text,
  ADMINISTRATORS: text,
  MEMBERS: v.optional(v.string(), ''),
  HOST_NAMES: v.optional(v.string(), ''),
  PORT: v.optional(port, '3000'),
  STORAGE_PATH: v.optional(text),
  SIMULATOR_URL: v.optional(v.pipe(v.string(), v.url())),
});

export type Environment = v.InferOutput<typeof ENVIRONMENT>;
