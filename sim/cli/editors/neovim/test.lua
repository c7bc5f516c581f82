-- The test of clrsim.lua: nvim --headless -u NONE -c "luafile clrsim.lua" -c "luafile test.lua", in an empty folder.

local function check(holds, what)
  if not holds then
    io.stderr:write("FAILED: " .. what .. "\n")
    vim.cmd("cquit 1")
  end
  io.stdout:write("ok: " .. what .. "\n")
end

local file = io.open("wrong.kdl", "w")
file:write('function "App.Main" kind="jti" { body { new } }\nstop at="App.Main"\n')
file:close()
vim.cmd("edit wrong.kdl")
local buffer = vim.api.nvim_get_current_buf()
local document = { uri = vim.uri_from_bufnr(buffer) }

local function ask(method, params)
  params.textDocument = document
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 10000) or {}
  for _, answer in pairs(answers) do
    return answer.result
  end
end

local function diagnostics()
  return vim.diagnostic.get(buffer)
end

check(vim.wait(20000, function() return #diagnostics() > 0 end), "a problem is shown")
check(diagnostics()[1].message:find("did you mean `jit`", 1, true), "it has a hint")
local range = { start = { line = 0, character = 26 }, ["end"] = { line = 0, character = 26 } }
local actions = ask("textDocument/codeAction", { range = range, context = { diagnostics = {} } })
check(actions and actions[1] and actions[1].title == "change to `jit`", "the problem has a correction")
vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
check(vim.wait(20000, function() return #diagnostics() == 0 end), "the correction mends it")
local hover = ask("textDocument/hover", { position = { line = 1, character = 2 } })
check(hover and hover.contents.value:find("**stop** in text", 1, true), "a node has a meaning")
local symbols = ask("textDocument/documentSymbol", {})
check(symbols and #symbols == 2 and symbols[1].name == "App.Main", "the text has symbols")
local edit = ask("textDocument/rename", { position = { line = 0, character = 12 }, newName = "App.Start" })
check(edit, "a name can be changed")
vim.lsp.util.apply_workspace_edit(edit, "utf-16")
check(vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1] == 'stop at="App.Start"', "it is changed where it is used")
vim.cmd("qall!")
