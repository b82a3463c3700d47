import { distance } from 'fastest-levenshtein';

/** So many letters may be wrong, missing or too many; in a short name, a third of it. */
const MAX_MISTAKES = 2;

/**
 * The options that a misspelled one may stand for: of the same name in another group, or of a similar name in its own.
 * @param path of the option that is unknown, such as `http.timeout`
 * @param options all paths that are known
 */
export function similarOptions(path: string, options: readonly string[]): readonly string[] {
  const [group, name] = groupAndName(path);
  const elsewhere = options.filter((option) => groupAndName(option)[1].toLowerCase() === name.toLowerCase());
  if (elsewhere.length > 0) return elsewhere;
  const most = Math.min(MAX_MISTAKES, Math.floor(name.length / 3));
  const ranked = options
    .filter((option) => groupAndName(option)[0] === group)
    .map((option) => ({ option, mistakes: distance(path.toLowerCase(), option.toLowerCase()) }))
    .filter(({ mistakes }) => mistakes <= most)
    .sort((one, other) => one.mistakes - other.mistakes);
  return ranked.slice(0, 1).map(({ option }) => option);
}

function groupAndName(path: string): readonly [group: string, name: string] {
  const dot = path.lastIndexOf('.');
  return [path.slice(0, Math.max(dot, 0)), path.slice(dot + 1)];
}
