'use strict'
// The search: an index made with the pages, asked for when somebody begins to search.
// It is a script and not JSON, so that it can be read from a disk as well.
const base = new URL('.', document.currentScript.src)
const input = document.getElementById('search')
const list = document.getElementById('found')
let parts = null

// pages is called by the index.
function pages (all) {
  parts = all.map(p => ({ ...p, title: p.t.toLowerCase(), heading: p.h.toLowerCase(), body: p.b.toLowerCase() }))
  show()
}

function load () {
  if (document.getElementById('index')) return
  const script = document.createElement('script')
  script.id = 'index'
  script.src = new URL('search-index.js', base)
  document.head.append(script)
}

// find wants every word of the query in a part; words in its heading count most.
function find (words) {
  const hits = []
  for (const p of parts) {
    let score = 0
    for (const w of words) {
      const within = p.body.split(w).length - 1
      const one = (p.heading.includes(w) ? 12 : 0) + (p.heading === w ? 20 : 0) + (p.title.includes(w) ? 4 : 0) + Math.min(within, 5)
      if (one === 0) { score = 0; break }
      score += one
    }
    if (score > 0) hits.push({ p, score: p.p === 'changelog.html' ? score / 4 : score })
  }
  return hits.sort((a, b) => b.score - a.score).slice(0, 12)
}

// around is a piece of text about the first word, with the words marked.
function around (p, words) {
  const at = Math.max(0, Math.min(...words.map(w => p.body.indexOf(w)).filter(i => i >= 0).concat(p.b.length)) - 50)
  const span = document.createElement('span')
  const from = at === p.b.length ? 0 : at
  const text = (from > 0 ? '… ' + p.b.slice(from).replace(/^\S*\s/, '') : p.b).slice(0, 150).replace(/\s\S*$/, '').trim()
  const escaped = words.map(w => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  for (const piece of text.split(new RegExp(`(${escaped})`, 'i'))) {
    if (!words.includes(piece.toLowerCase())) { span.append(piece); continue }
    const mark = document.createElement('mark')
    mark.textContent = piece
    span.append(mark)
  }
  return span
}

function show () {
  if (parts === null) return
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  const open = words.length > 0
  list.hidden = !open
  if (!open) return
  const hits = find(words)
  list.replaceChildren(...hits.map(({ p }) => {
    const item = document.createElement('li')
    const link = document.createElement('a')
    link.href = new URL(`${p.p}#${p.a}`, base)
    const name = document.createElement('b')
    name.textContent = p.h === p.t ? p.t : `${p.t}: ${p.h}`
    link.append(name, around(p, words))
    item.append(link)
    return item
  }))
  if (hits.length === 0) {
    const none = document.createElement('li')
    none.className = 'none'
    none.textContent = 'Nothing has all of these words.'
    list.append(none)
  }
}

function close () { list.hidden = true }

// move goes from the field to what was found, and along it.
function move (by) {
  const links = [...list.querySelectorAll('a')]
  const to = links.indexOf(document.activeElement) + by
  if (to < 0) input.focus()
  else links[Math.min(to, links.length - 1)]?.focus()
}

input.addEventListener('focus', () => { load(); show() })
input.addEventListener('input', () => { load(); show() })
document.querySelector('.search').addEventListener('keydown', e => {
  if (e.key === 'ArrowDown') move(1)
  else if (e.key === 'ArrowUp') move(-1)
  else if (e.key === 'Enter' && e.target === input) list.querySelector('a')?.click()
  else if (e.key === 'Escape') { close(); document.activeElement.blur() } else return
  e.preventDefault()
})
list.addEventListener('click', close)
document.addEventListener('click', e => { if (!e.target.closest('.search')) close() })
document.addEventListener('keydown', e => {
  if (e.key === '/' && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName) && !e.ctrlKey && !e.metaKey) {
    e.preventDefault()
    input.focus()
  }
})

const menu = document.getElementById('menu')
menu.addEventListener('click', () => {
  const open = document.getElementById('pages').classList.toggle('open')
  menu.setAttribute('aria-expanded', String(open))
})
document.querySelector('#pages [aria-current]')?.scrollIntoView({ block: 'nearest' })

// What is wider than its place is moved by the keyboard too.
function reach () {
  for (const e of document.querySelectorAll('table, pre')) {
    if (e.scrollWidth > e.clientWidth) e.tabIndex = 0
    else e.removeAttribute('tabindex')
  }
}
reach()
window.addEventListener('resize', reach)
