function e(e){let n=e.replace(/^\ufeff/,``),r=t(n),i=[],a={line:1,cells:[]},o=``,s=!1,c=1,l=()=>{a.cells.push(o.trim()),a.cells.some(Boolean)&&i.push(a),o=``};for(let e=0;e<n.length;e++){let t=n[e];t===`
`&&c++,s?t===`"`?n[e+1]===`"`?o+=n[++e]:s=!1:o+=t:t===`"`&&!o.trim()?(s=!0,o=``):t===r?(a.cells.push(o.trim()),o=``):t===`
`||t===`\r`&&n[e+1]!==`
`?(l(),a={line:c,cells:[]}):t!==`\r`&&(o+=t)}if(s)throw SyntaxError(`line ${a.line}`);return l(),i}function t(e){let t=/^[^\r\n]*/.exec(e)[0],n=e=>t.split(e).length;return[`,`,`;`,`	`].reduce((e,t)=>n(t)>n(e)?t:e)}var n=e=>e.map(e=>e.map(r).join(`,`)).join(`\r
`)+`\r
`;function r(e){let t=e===void 0?``:String(e);return/^[=+\-@\t\r]/.test(t)&&(t=`'`+t),/[",\r\n]/.test(t)?`"${t.replaceAll(`"`,`""`)}"`:t}function i(e,t,n){let r=URL.createObjectURL(new Blob([n],{type:t})),i=document.createElement(`a`);i.href=r,i.download=e.replace(/[^\w.-]+/g,`-`),i.click(),setTimeout(()=>URL.revokeObjectURL(r),1e3)}export{e as parseCSV,i as save,n as writeCSV};