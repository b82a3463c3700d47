import { readFileSync } from 'node:fs';
import {
  defaultTagOf,
  descriptionOf,
  inOneLine,
  optionProperties,
  typeOf,
  type OptionProperty,
} from './option-properties.js';
import { schemaDefault } from './schema-defaults.js';

const page = new URL('../../docs/options.md', import.meta.url);
const TABLE = /(?<=<!-- prettier-ignore-start -->\n\n).*?(?=\n\n<!-- prettier-ignore-end -->)/s;

/** What `npm run docs:options` writes, by file. */
export function generatedFiles(): Map<string, string> {
  const properties = optionProperties();
  const files = [...new Set(properties.map(({ file }) => file.href))];
  return new Map([
    ...files.map((file) => [file, withDefaults(properties.filter((one) => one.file.href === file))] as const),
    [page.href, readFileSync(page, 'utf8').replace(TABLE, () => tableOf(properties))],
  ]);
}

/** The source of these options, in which each `@defaultValue` is that of the schema, if the schema has one. */
function withDefaults(properties: readonly OptionProperty[]): string {
  let text = properties[0]?.node.getSourceFile().text ?? '';
  for (const { path, node } of properties.toReversed()) {
    const value = schemaDefault(path);
    const tag = defaultTagOf(node);
    if (node.questionToken && !tag) throw new Error(`the comment of the option ${path} has no @defaultValue`);
    if (value === undefined || !tag) continue;
    const { end } = tag.tagName;
    text = text.slice(0, end) + text.slice(end).replace(/^.*?(?=\s*(?:\*\/|\n))/, () => ` ${value}`);
  }
  return text;
}

function tableOf(properties: readonly OptionProperty[]): string {
  const rows = properties.map(({ path, node }) => [
    `\`${path}\``,
    `\`${typeOf(node)}\``,
    schemaDefault(path) ?? (node.questionToken ? inOneLine(defaultTagOf(node)?.comment) : 'required'),
    descriptionOf(node),
  ]);
  return [['option', 'type', 'default', 'meaning'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.map(cell).join(' | ')} |`)
    .join('\n');
}

/** A path of this repository becomes a link from the page. */
function cell(text: string): string {
  const linked = text.replaceAll(/docs\/([\w-]+\.md)(#[\w-]+)?/g, '[$1]($1$2)');
  return linked.replaceAll('|', String.raw`\|`);
}
