// Reads PowerShell on standard input and names what a parser does not understand: line, column, text.
// There is no PowerShell to run on Linux; its grammar there is.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Language, Parser } from 'web-tree-sitter';

await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(createRequire(import.meta.url).resolve('tree-sitter-powershell/tree-sitter-powershell.wasm')));
const tree = parser.parse(readFileSync(0, 'utf8'));

function look(node) {
  if (node.isError || node.isMissing) {
    console.log(`${node.startPosition.row + 1}:${node.startPosition.column + 1}: ${node.isMissing ? `missing ${node.type}` : node.text.slice(0, 60)}`);
  }
  for (const child of node.children) look(child);
}
look(tree.rootNode);
process.exitCode = tree.rootNode.hasError ? 1 : 0;
