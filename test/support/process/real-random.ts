const { random } = Math;

/** Boots with the real `Math.random`: Nest makes the ids of providers with it, and mixes up those whose ids are equal. */
export async function withRealRandom<T>(boot: () => Promise<T>): Promise<T> {
  const mocked = Math.random;
  Math.random = random;
  try {
    return await boot();
  } finally {
    Math.random = mocked;
  }
}
