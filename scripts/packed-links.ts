import { posix } from 'node:path';

/** Code is no place for links. */
const FENCES = /(^ *```.*?^ *```$)/ms;
const LINKS = /(!\[[^\]]*\]\(|\]\(|<img [^>]*src="|<a [^>]*href=")([^()"\s]+)/g;

interface Place {
  /** The page with the links, as the package has it. */
  readonly page: string;
  /** Where the folder of the package is in the repository, as an address. */
  readonly base: URL;
  /** What the package has, as in `files` of its manifest. */
  readonly files: readonly string[];
}

const isRelative = (target: string): boolean => !/^(?:[a-z]+:|#)/.test(target);

/** The file that a link of a page leads to. */
const fileAt = (page: string, target: string): string =>
  posix.join(posix.dirname(page), target.replace(/#.*/, ''));

/** Turns links to what a package does not have into links to the repository. */
export function withAbsoluteLinks(text: string, { page, base, files }: Place): string {
  const isPacked = (file: string): boolean =>
    files.some((each) => file === each || file.startsWith(`${each}/`));
  const parts = text.split(FENCES);
  const linked = parts.map((part, index) => {
    if (index % 2 === 1) return part;
    return part.replaceAll(LINKS, (whole, start: string, target: string) => {
      if (!isRelative(target) || isPacked(fileAt(page, target))) return whole;
      const { href } = new URL(target, new URL(page, base));
      return start + (/^(?:!|<img)/.test(start) ? href.replace('/blob/HEAD/', '/raw/HEAD/') : href);
    });
  });
  return linked.join('');
}
