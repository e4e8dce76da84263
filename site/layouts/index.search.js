{{- /* What the search looks through: every page, cut at its headings. */ -}}
{{- $parts := slice -}}
{{- range site.Pages -}}
  {{- if .File -}}
  {{- $page := . -}}
  {{- $title := partial "title.html" . -}}
  {{- $marked := replaceRE `<h([1-4]) id="([^"]*)">` "\x01$2\x02" .Content -}}
  {{- range after 1 (split $marked "\x01") -}}
    {{- $cut := split . "\x02" -}}
    {{- $html := delimit (after 1 $cut) "" -}}
    {{- $heading := index (split $html "</h") 0 | replaceRE `<a class="anchor".*` "" | plainify | htmlUnescape -}}
    {{- $body := delimit (after 1 (split $html "</h")) "</h" | replaceRE `^[1-4]>` "" | replaceRE `<(/td|/th|/li|/p|br)[^>]*>` " " | plainify | htmlUnescape -}}
    {{- $parts = $parts | append (dict "p" (cond $page.IsHome "index.html" (strings.TrimPrefix "/" $page.RelPermalink)) "a" (index $cut 0) "t" (trim $title " \n") "h" (trim $heading " \n") "b" (replaceRE `\s+` " " $body)) -}}
  {{- end -}}
  {{- end -}}
{{- end -}}
pages({{ $parts | jsonify }});
